//! The port of Open Cluster Management's user server: members and nothing else, for callers that
//! prove their identity themselves.

use kit::pki::Issued;
use system_tests::prelude::*;

use super::{ALICE, Fixture};

across_http!(
    nobodys_word_is_taken_for_anothers,
    a_client_certificate_of_the_hub_is_a_user,
    nothing_but_members_is_served,
    what_runs_behind_a_member_is_not_reached,
    watches_end_and_nobody_new_is_let_in_when_the_gateway_leaves,
);

async fn connect(fixture: &Fixture, http: Http, identity: Option<&Issued>) -> Connection {
    http.connect(&fixture.testbed.user_server_client(identity)).await.expect("the gateway accepts connections")
}

/// The last review.
fn reviewed(fixture: &Fixture) -> Value {
    fixture.hub.access_reviews().pop().expect("a review")
}

async fn nobodys_word_is_taken_for_anothers(http: Http) {
    let fixture = Fixture::set(Dialect::UserServer).await;
    let forged = [("x-remote-user", "admin"), ("x-remote-group", "system:masters")];
    let path = fixture.path("/api/v1/pods");
    // The same certificate by which the hub is trusted on the gateway's own port.
    let front_proxy = fixture.hub.front_proxy_identity();
    let mut native = http.connect(&fixture.testbed.client_with(&front_proxy)).await.expect("a connection");
    assert_eq!(native.call("GET", &proxied(CLUSTER, "/api/v1/pods"), &forged, b"").await.status, 200);
    assert_eq!(fixture.hub.access_reviews().len(), 0, "system:masters need none");
    drop(fixture.member.next_request().await);

    let answer = connect(&fixture, http, Some(&front_proxy)).await.call("GET", &path, &forged, b"").await;
    answer.status_message(401, "Unauthorized");
    assert_eq!((fixture.hub.access_reviews().len(), fixture.member.request_count()), (0, 1));

    let answer = connect(&fixture, http, None).await.bearer(ALICE).call("GET", &path, &forged, b"").await;
    assert_eq!((answer.status, &reviewed(&fixture)["user"]), (200, &json!("alice")));
    let seen = fixture.member.next_request().await;
    assert!(!seen.headers.keys().any(|name| name.as_str().starts_with("x-remote-")), "{:?}", seen.headers);

    fixture.hub.on_access(|_| Decision::no_opinion(""));
    let answer = connect(&fixture, http, None).await.call("GET", &path, &forged, b"").await;
    assert!(answer.status_message(403, "Forbidden").contains("User \"system:anonymous\""));
}

async fn a_client_certificate_of_the_hub_is_a_user(http: Http) {
    let fixture = Fixture::set(Dialect::UserServer).await;
    let bob = fixture.hub.clients().issue(&Leaf::client("bob").group("devs"));
    let mut connection = connect(&fixture, http, Some(&bob)).await;
    assert_eq!(connection.get(&fixture.path("/api")).await.status, 200);
    let spec = reviewed(&fixture);
    assert_eq!((&spec["user"], &spec["groups"]), (&json!("bob"), &json!(["devs", "system:authenticated"])));
    let stranger = Authority::new("elsewhere").issue(&Leaf::client("bob"));
    let mut connection = connect(&fixture, http, Some(&stranger)).await;
    connection.get(&fixture.path("/api")).await.status_message(401, "Unauthorized");
}

async fn nothing_but_members_is_served(http: Http) {
    let fixture = Fixture::set(Dialect::UserServer).await;
    let mut connection = fixture.connect(http).await;
    for (target, cluster) in [
        ("/healthz", "healthz"),
        ("/metrics", "metrics"),
        ("/apis", "apis"),
        (&*proxied(CLUSTER, "/api"), "apis"),
        ("/clusters/c1/api", "clusters"),
        ("/debug/flags/v", "debug"),
    ] {
        let message = connection.get(target).await.status_message(404, "NotFound");
        assert_eq!(message, format!("no such cluster {cluster}"), "{target}");
        assert_eq!(reviewed(&fixture)["resourceAttributes"]["name"], cluster, "{target}");
    }
    let asked = fixture.hub.access_reviews().len();
    for target in ["/", "//c1/api", "/C1/api", "/%63%31/api", "/../c1"] {
        let message = connection.get(target).await.status_message(400, "BadRequest");
        assert_eq!(message, "the path must begin with the name of a cluster: /<cluster>/<path on the member>");
    }
    assert_eq!((fixture.hub.access_reviews().len(), fixture.member.request_count()), (asked, 0));
    // And members only here: elsewhere their paths do not exist.
    let mut elsewhere = fixture.testbed.anonymous(http).await.bearer(ALICE);
    elsewhere.get(&fixture.path("/api")).await.status_message(404, "NotFound");
    assert_eq!(reviewed(&fixture)["nonResourceAttributes"]["path"], "/c1/api");
}

async fn what_runs_behind_a_member_is_not_reached(http: Http) {
    let fixture = Fixture::set(Dialect::UserServer).await;
    let mut connection = fixture.connect(http).await;
    let services = "/api/v1/namespaces/ns/services";
    for rest in ["https:web:8443/proxy-service/ping?x=1", "web/proxy-service", "web/proxy%2Dservice/a"] {
        let answer = connection.get(&fixture.path(&format!("{services}/{rest}"))).await;
        let message = answer.status_message(403, "Forbidden");
        assert!(message.starts_with("the gateway reaches API servers, not what runs behind them"), "{message}");
    }
    assert_eq!(fixture.member.request_count(), 0);
    // Paths that its own API server serves are another matter.
    assert_eq!(connection.get(&fixture.path(&format!("{services}/web:80/proxy/ping"))).await.status, 200);
    fixture.hub.on_access(|_| Decision::no_opinion(""));
    let refused = connection.call("DELETE", &fixture.path(&format!("{services}/web/proxy-service/x")), &[], b"").await;
    assert!(refused.status_message(403, "Forbidden").contains("cannot delete resource"), "the hub's word comes first");
}

async fn watches_end_and_nobody_new_is_let_in_when_the_gateway_leaves(http: Http) {
    let fixture = Fixture::set(Dialect::UserServer).await;
    let mut streams = fixture.member.streams("/api/v1/pods");
    let mut connection = fixture.connect(http).await;
    let target = fixture.path("/api/v1/pods?watch=true");
    let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    assert!(stream.send("{\"type\":\"ADDED\"}\n").await);
    assert_eq!(watch.event().await, "{\"type\":\"ADDED\"}\n");
    let client = fixture.testbed.user_server_client(None);
    let stopping = tokio::spawn(fixture.testbed.stop());
    assert_eq!(watch.line().await.expect("a clean end"), None);
    drop(connection);
    stopping.await.expect("it stops");
    assert!(client.h1().await.is_err());
}

/// One core has so much room, whichever the port.
#[tokio::test]
async fn strangers_have_no_more_room_by_a_further_port() {
    const MOST_OF_ONE: usize = 256;
    let fixture = Fixture::set(Dialect::UserServer).await;
    let clients = [fixture.testbed.client(), fixture.testbed.user_server_client(None)];
    let mut idle = Vec::new();
    for number in 0..=MOST_OF_ONE {
        idle.push(clients[number % 2].h1().await.expect("a connection"));
    }
    let end = within(WAIT, "the end of the oldest", idle[0].read_to_end()).await;
    assert!(end.is_err() || end.is_ok_and(|bytes| bytes.is_empty()));
    assert_eq!(fixture.connect(Http::H2).await.get(&fixture.path("/api")).await.status, 200);
}
