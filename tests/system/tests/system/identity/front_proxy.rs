//! The hub's aggregator is trusted with the identity of its callers; no other client is.

use kit::pki::Issued;
use system_tests::prelude::*;

use super::{Fixture, PATH, target};

/// A forged identity.
const FORGED: &[(&str, &str)] = &[
    ("X-Remote-User", "root"),
    ("x-remote-group", "system:masters"),
    ("X-Remote-Uid", "0"),
    ("X-Remote-Extra-Scopes", "all"),
    ("X_Remote_User", "root"),
];

across_http!(the_aggregators_word_is_taken, forged_identities_have_no_effect);

async fn the_aggregators_word_is_taken(http: Http) {
    let fixture = Fixture::set().await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(http).await;
    let identity = [
        ("X-Remote-User", "jörg"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Group", "developers"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-Example.com%2fscopes", "read"),
        ("X-Remote-Extra-Example.com%2fscopes", "write"),
    ];
    let answer = connection.call("DELETE", &target(), &identity, b"").await;
    assert_eq!((answer.status, answer.text()), (200, "from the member".to_owned()));
    let spec = fixture.reviewed();
    assert_eq!((&spec["user"], &spec["uid"]), (&json!("jörg"), &json!("u-1")));
    assert_eq!(spec["groups"], json!(["developers", "system:authenticated"]));
    assert_eq!(spec["extra"], json!({"example.com/scopes": ["read", "write"]}));
    let attributes = json!({"verb": "delete", "group": "cluster.core.oam.dev", "version": "v1alpha1",
        "resource": "clustergateways", "subresource": "proxy", "name": "c1"});
    for (key, value) in attributes.as_object().unwrap() {
        assert_eq!(&spec["resourceAttributes"][key], value, "{key}: {spec}");
    }
    let request = fixture.member.next_request().await;
    assert_eq!((request.path(), request.header("authorization")), (PATH, Some(&*format!("Bearer {MEMBER_TOKEN}"))));
    let crossed = request.headers.keys().find(|name| name.as_str().starts_with("x-remote"));
    assert_eq!(crossed, None);
}

async fn forged_identities_have_no_effect(http: Http) {
    let fixture = Fixture::set().await;
    fixture.hub.add_token("alices-token", TokenUser::new("alice", &["developers"]));
    fixture.hub.on_access(|spec| match spec["user"].as_str() {
        Some("alice" | "bob") => Decision::allow(),
        _ => Decision::no_opinion(""),
    });
    // Without a certificate.
    let mut connection = fixture.connect(http, None).await;
    let message = connection.call("GET", &target(), FORGED, b"").await.status_message(403, "Forbidden");
    assert!(message.contains("User \"system:anonymous\""), "{message}");
    assert_eq!(fixture.reviewed()["groups"], json!(["system:unauthenticated"]));
    assert_eq!(fixture.member.request_count(), 0);

    // A user with a token, and one with a certificate.
    let mut connection = fixture.connect(http, None).await.bearer("alices-token");
    assert_eq!(connection.call("GET", &target(), FORGED, b"").await.status, 200);
    assert_reviewed(&fixture, "alice", &["developers", "system:authenticated"]);

    let bob = fixture.hub.clients().issue(&Leaf::client("bob").group("testers"));
    let mut connection = fixture.connect(http, Some(&bob)).await;
    assert_eq!(connection.call("GET", &target(), FORGED, b"").await.status, 200);
    assert_reviewed(&fixture, "bob", &["testers", "system:authenticated"]);
    for request in fixture.member.requests() {
        let crossed = request.headers.keys().find(|name| name.as_str().replace('_', "-").starts_with("x-remote"));
        assert_eq!(crossed, None);
    }
}

fn assert_reviewed(fixture: &Fixture, user: &str, groups: &[&str]) {
    let spec = fixture.reviewed();
    assert_eq!((&spec["user"], &spec["groups"]), (&json!(user), &json!(groups)));
    assert_eq!((spec.get("uid"), spec["extra"].get("scopes")), (None, None), "{spec}");
}

/// Certificates that look like the aggregator's and are not.
fn impostors(fixture: &Fixture) -> Vec<(&'static str, Issued)> {
    let (proxy, name) = (fixture.hub.front_proxy(), "front-proxy-client");
    vec![
        ("another authority", Authority::new("front-proxy-ca").issue(&Leaf::client(name))),
        ("another name", proxy.issue(&Leaf::client("front-proxy-clients"))),
        ("no name", proxy.issue(&Leaf::client(""))),
        ("expired", proxy.issue(&Leaf::client(name).expired())),
        ("not valid yet", proxy.issue(&Leaf::client(name).not_yet_valid())),
        ("a server's", proxy.issue(&Leaf::server(name))),
        ("an authority's", proxy.issue(&Leaf::client(name).authority())),
    ]
}

across_http!(a_certificate_that_is_not_the_aggregators_is_refused);

async fn a_certificate_that_is_not_the_aggregators_is_refused(http: Http) {
    let fixture = Fixture::set().await;
    fixture.hub.allow_all();
    for (what, impostor) in impostors(&fixture) {
        let mut connection = fixture.connect(http, Some(&impostor)).await;
        let answer = connection.call("GET", &target(), FORGED, b"").await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text());
        answer.status_message(401, "Unauthorized");
    }
    assert_eq!((fixture.member.request_count(), fixture.hub.access_reviews().len()), (0, 0));
}

#[tokio::test]
async fn the_aggregators_name_below_the_users_authority_is_a_user() {
    let fixture = Fixture::set().await;
    let user = fixture.hub.clients().issue(&Leaf::client("front-proxy-client"));
    let mut connection = fixture.connect(Http::H2, Some(&user)).await;
    let message = connection.call("GET", &target(), FORGED, b"").await.status_message(403, "Forbidden");
    assert!(message.contains("User \"front-proxy-client\""), "{message}");
    assert_reviewed(&fixture, "front-proxy-client", &["system:authenticated"]);
}

#[tokio::test]
async fn the_aggregator_without_a_user_is_nobody() {
    let fixture = Fixture::set().await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(Http::H2).await;
    for headers in [&[][..], &[("X-Remote-Group", "system:masters")], &[("X-Remote-User", "")]] {
        connection.call("GET", &target(), headers, b"").await.status_message(401, "Unauthorized");
    }
    assert_eq!(fixture.member.request_count(), 0);
}

#[tokio::test]
async fn a_new_authority_counts_for_connections_that_are_open_already() {
    let fixture = Fixture::set().await;
    fixture.hub.allow_all();
    let user = [("X-Remote-User", "alice")];
    let mut before = fixture.front_proxy(Http::H2).await;
    assert_eq!(before.call("GET", &target(), &user, b"").await.status, 200);

    let renewed = Authority::new("front-proxy-ca");
    let root = renewed.root_pem();
    fixture.hub.change_authentication(|data| drop(data.insert("requestheader-client-ca-file".to_owned(), root)));
    let identity = renewed.issue(&Leaf::client("front-proxy-client"));
    // A refused client loses the connection.
    let taken_over = async || {
        fixture.connect(Http::H2, Some(&identity)).await.call("GET", &target(), &user, b"").await.status == 200
    };
    becomes(WAIT, "the new authority", taken_over).await;
    let seen = fixture.member.request_count();
    before.call("GET", &target(), &user, b"").await.status_message(401, "Unauthorized");
    assert_eq!(fixture.member.request_count(), seen);
}
