//! Who may upgrade: acting on a pod is a write, whatever the method of the request says.

use kit::member::raw::{Act, RawMember};
use system_tests::{CLUSTER, Rig, VIEWER, cluster, proxied};

use super::{EXEC, SPDY, refusal, upgrade_as};

async fn agreeable() -> RawMember {
    RawMember::always(Act::upgrade("websocket", b"")).await
}

#[tokio::test]
async fn who_may_only_read_may_upgrade_nothing_but_watches() {
    let member = agreeable().await;
    let rig = Rig::with(&member).await;
    for (method, protocol, rest) in [
        ("GET", "websocket", EXEC),
        ("POST", SPDY, EXEC),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/attach?stdin=true"),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/portforward?ports=80"),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/%65xec?command=sh"),
        ("GET", "websocket", "//api/v1/namespaces/ns/pods/p/exec/"),
        // A kubelet serves exec, attach and port-forward by paths of its own, and asks nobody for more than `get nodes/proxy`.
        ("GET", "websocket", "/api/v1/nodes/n/proxy/exec/ns/p/c?command=id&output=1"),
        ("GET", "websocket", "/api/v1/nodes/n/proxy/exec/ns/p/c?command=id&output=1&watch=true"),
        ("GET", "websocket", "/api/v1/nodes/n/%70roxy/e%78ec/ns/p/c?command=id&watch=1"),
        ("GET", "websocket", "/api/v1/nodes/n:10250/proxy/attach/ns/p/c?input=1"),
        ("GET", "websocket", "/api/v1/nodes/https:n:10250/proxy/portForward/ns/p?port=80"),
        ("GET", "websocket", "/api/v1/namespaces/ns/services/s/proxy/terminal?watch=true"),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/exec?command=sh&watch=true"),
        // Whatever it may be, it is no watch.
        ("GET", "websocket", "/apis/example.com/v1/namespaces/ns/things/t/terminal"),
        ("GET", "websocket", "/api/v1/pods?watch=false"),
        ("GET", "websocket", "/api/v1/pods?command=watch%3Dtrue"),
    ] {
        let asked = upgrade_as(VIEWER, &rig, (method, &proxied(CLUSTER, rest)), protocol, &[]).await;
        let message = refusal(asked).await.status_message(403, "Forbidden");
        let attributes = format!(
            "clustergateways.cluster.core.oam.dev \"{CLUSTER}\" is forbidden: User \"viewer\" cannot create resource \
             \"clustergateways/proxy\" in API group \"cluster.core.oam.dev\" at the cluster scope"
        );
        assert!(message.starts_with(&attributes), "{method} {rest}: {message}");
    }
    assert_eq!(member.connection_count(), 0);
}

#[tokio::test]
async fn who_may_read_may_watch_by_websocket() {
    let member = agreeable().await;
    let rig = Rig::with(&member).await;
    for rest in ["/api/v1/pods?watch=true", "/api/v1/namespaces/ns/pods?resourceVersion=1&watch=1"] {
        let target = proxied(CLUSTER, rest);
        let (_connection, head) = upgrade_as(VIEWER, &rig, ("GET", &target), "websocket", &[]).await;
        assert_eq!(head.status, 101, "{rest}");
    }
}

#[tokio::test]
async fn the_flag_lets_readers_exec_by_websocket_only() {
    let member = agreeable().await;
    let rig = Rig::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg("--upgrade-verb=get").start().await;
    let target = proxied(CLUSTER, EXEC);
    let (_connection, head) = upgrade_as(VIEWER, &rig, ("GET", &target), "websocket", &[]).await;
    assert_eq!(head.status, 101);
    let asked = upgrade_as(VIEWER, &rig, ("POST", &target), SPDY, &[]).await;
    refusal(asked).await.status_message(403, "Forbidden");
    assert_eq!(member.connection_count(), 1);
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let member = agreeable().await;
    let rig = Rig::with(&member).await;
    let target = proxied(CLUSTER, EXEC);
    let asked = upgrade_as("no-such-token", &rig, ("GET", &target), "websocket", &[]).await;
    refusal(asked).await.status_message(401, "Unauthorized");

    let mut connection = rig.client().h1().await.unwrap();
    let head = connection.upgrade("GET", &target, "websocket", &[]).await.unwrap();
    let message = refusal((connection, head)).await.status_message(403, "Forbidden");
    assert!(message.contains("system:anonymous"), "{message}");
    assert_eq!(member.connection_count(), 0);
}
