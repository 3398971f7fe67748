//! Callers that prove no identity: their answers, the end of their connections, and the little that
//! is open to them.

use serde_json::json;
use system_tests::{ADMIN, CLUSTER, Connection, Http, Testbed, VIEWER, across_http, cluster, proxied};

use super::{Fixture, PATH, target};

/// Asserts that the connection ends by itself, in an orderly way.
async fn assert_closes(http: Http, mut connection: Connection) {
    match http {
        Http::H1 => {
            let rest = connection.h1().read_to_end().await.expect("a proper end of the connection");
            assert!(rest.is_empty());
        }
        Http::H2 => match connection.h2().closed().await {
            Ok(()) => {}
            // The gateway was gone when this client said its own goodbye.
            Err(error) => assert!(error.is_io(), "{error}"),
        },
    }
}

across_http!(a_bad_token_is_unauthorized, no_token_is_forbidden);

async fn a_bad_token_is_unauthorized(http: Http) {
    let fixture = Fixture::set().await;
    let mut connection = fixture.connect(http, None).await.bearer("no-such-token");
    let answer = connection.get(&target()).await;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
    assert_eq!((answer.status, answer.json()), (401, status));
    assert_eq!(fixture.hub.access_reviews().len(), 0);
    assert_closes(http, connection).await;
}

async fn no_token_is_forbidden(http: Http) {
    let fixture = Fixture::set().await;
    let mut connection = fixture.connect(http, None).await;
    let answer = connection.get(&target()).await;
    let message = answer.status_message(403, "Forbidden");
    let expected = format!(
        "clustergateways.cluster.core.oam.dev \"{CLUSTER}\" is forbidden: User \"system:anonymous\" cannot get resource \
         \"clustergateways/proxy\" in API group \"cluster.core.oam.dev\" at the cluster scope"
    );
    assert_eq!(message, expected);
    let details = json!({"name": CLUSTER, "group": "cluster.core.oam.dev", "kind": "clustergateways"});
    assert_eq!(answer.json()["details"], details);
    assert_eq!(fixture.member.request_count(), 0);
    assert_closes(http, connection).await;
}

#[tokio::test]
async fn strangers_cannot_tell_which_clusters_exist() {
    let fixture = Fixture::set().await;
    for (name, token) in [("c1", None), ("nowhere", None), ("c1", Some("bad")), ("nowhere", Some("bad"))] {
        let mut connection = fixture.connect(Http::H2, None).await;
        if let Some(token) = token {
            connection = connection.bearer(token);
        }
        let answer = connection.get(&proxied(name, PATH)).await;
        let expected = if token.is_some() { (401, "Unauthorized") } else { (403, "Forbidden") };
        let message = answer.status_message(expected.0, expected.1);
        assert!(!message.contains("no such cluster"), "{message}");
    }
}

across_http!(connections_of_users_stay_open_when_they_are_refused);

async fn connections_of_users_stay_open_when_they_are_refused(http: Http) {
    let fixture = Fixture::set().await;
    // Many users share the aggregator's connection, strangers among them.
    let mut connection = fixture.front_proxy(http).await;
    let anonymous = [("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated")];
    for headers in [&anonymous[..], &[], &[("X-Remote-User", "alice")]] {
        let answer = connection.call("GET", &target(), headers, b"").await;
        assert!(matches!(answer.status, 401 | 403), "{}", answer.text());
        assert_eq!(answer.header("connection"), None);
    }
    fixture.hub.allow_all();
    assert_eq!(connection.call("GET", &target(), &[("X-Remote-User", "bob")], b"").await.status, 200);
}

across_http!(a_known_user_keeps_the_connection);

async fn a_known_user_keeps_the_connection(http: Http) {
    let member = http.member().await;
    member.on_any(|_| kit::member::Reply::full(200, &[], ""));
    let testbed = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).start().await;
    let mut connection = testbed.anonymous(http).await.bearer(VIEWER);
    let message = connection.call("DELETE", &target(), &[], b"").await.status_message(403, "Forbidden");
    assert!(message.contains("User \"viewer\" cannot delete"), "{message}");
    assert_eq!(connection.get(&target()).await.status, 200);
}

across_http!(probes_are_open_to_everybody);

async fn probes_are_open_to_everybody(http: Http) {
    let fixture = Fixture::set().await;
    let stranger = kit::pki::Authority::new("elsewhere").issue(&kit::pki::Leaf::client("kubelet"));
    let mut connection = fixture.connect(http, None).await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/livez?verbose=1"] {
        let answer = connection.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(answer.text().ends_with("ok") || answer.text().contains("check passed"), "{path}: {}", answer.text());
    }
    let answer = connection.call("HEAD", "/healthz", &[], b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    // A certificate of an untrusted authority fails no handshake: it is judged like any other
    // credential.
    let mut connection = fixture.connect(http, Some(&stranger)).await;
    connection.get(&target()).await.status_message(401, "Unauthorized");
    assert_eq!(fixture.hub.access_reviews().len(), 0);
}

#[tokio::test]
async fn a_bad_credential_beside_a_good_one_does_no_harm() {
    let testbed = Testbed::builder().start().await;
    let user = testbed.clients().issue(&kit::pki::Leaf::client("carol").group("system:masters"));
    let mut connection = Http::H2.connect(&testbed.client_with(&user)).await.unwrap().bearer("no-such-token");
    assert_eq!(connection.get("/apis").await.status, 200);
    let stranger = kit::pki::Authority::new("elsewhere").issue(&kit::pki::Leaf::client("mallory"));
    let mut connection = Http::H2.connect(&testbed.client_with(&stranger)).await.unwrap().bearer(ADMIN);
    assert_eq!(connection.get("/apis").await.status, 200);
}
