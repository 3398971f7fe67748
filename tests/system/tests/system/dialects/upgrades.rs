//! Exec, attach and port-forward, as on the native path: the member's request line is the client's,
//! and after its 101 every byte crosses.

use system_tests::prelude::*;

use super::{ALICE, hub};
use crate::upgrades::{EXEC, Head, SPDY, refusal, upgrade_over};

across_dialects!(bytes_cross_both_ways, the_request_reaches_the_member_as_it_was_sent, an_upgrade_is_a_create);

async fn set(dialect: Dialect, member: &RawMember) -> (FakeHub, Testbed) {
    let hub = hub().await;
    hub.put_secret(cluster(CLUSTER, member));
    let testbed = dialect.on(Testbed::builder().hub(&hub)).start().await;
    (hub, testbed)
}

async fn bytes_cross_both_ways(dialect: Dialect) {
    for (method, protocol) in [("GET", "websocket"), ("POST", SPDY)] {
        let member = RawMember::always(Act::upgrade(protocol, b"first frame")).await;
        let (_hub, testbed) = set(dialect, &member).await;
        let target = dialect.path(EXEC);
        let asked = (method, target.as_str());
        let (mut connection, head) = upgrade_over(&dialect.client(&testbed), ALICE, asked, protocol, &[]).await;
        assert_eq!(head.status, 101, "{method}");
        assert_eq!(connection.read_exact(11).await.expect("open"), "first frame");
        connection.send("and back").await.expect("open");
        assert_eq!(connection.read_exact(8).await.expect("open"), "and back");
    }
}

async fn the_request_reaches_the_member_as_it_was_sent(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let (_hub, testbed) = set(dialect, &member).await;
    let rest = "//api/v1/namespaces/a%2Fb/pods/p/exec?command=sh&command=-c&stdin=true&x=%20+";
    let target = dialect.path(rest);
    let headers = [("Sec-WebSocket-Protocol", "v5.channel.k8s.io")];
    let client = dialect.client(&testbed);
    let (_connection, head) = upgrade_over(&client, ALICE, ("GET", &target), "websocket", &headers).await;
    assert_eq!(head.status, 101);
    let seen = Head::parse(&member.next_head().await);
    assert_eq!(seen.line, format!("GET {rest} HTTP/1.1"));
    assert_eq!(seen.values("sec-websocket-protocol"), ["v5.channel.k8s.io"]);
    assert_eq!(seen.values("authorization"), [format!("Bearer {MEMBER_TOKEN}")]);
}

async fn an_upgrade_is_a_create(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let (hub, testbed) = set(dialect, &member).await;
    hub.on_access(|spec| match spec["resourceAttributes"]["verb"].as_str() {
        Some("get") => Decision::allow(),
        _ => Decision::no_opinion(""),
    });
    let client = dialect.client(&testbed);
    for (method, protocol) in [("GET", "websocket"), ("POST", SPDY)] {
        let target = dialect.path(EXEC);
        let asked = upgrade_over(&client, ALICE, (method, &target), protocol, &[]).await;
        let message = refusal(asked).await.status_message(403, "Forbidden");
        assert!(message.contains("User \"alice\" cannot create resource"), "{message}");
    }
    assert_eq!(member.connection_count(), 0);
    let target = dialect.path("/api/v1/pods?watch=true");
    let (_connection, head) = upgrade_over(&client, ALICE, ("GET", &target), "websocket", &[]).await;
    assert_eq!(head.status, 101, "who may read may watch");
}
