//! Rights to upgrade: acting on a pod is a write, whatever the method of the request says.

use kit::hub::{Decision, FakeHub, TokenUser};
use kit::member::raw::{Act, RawMember};
use system_tests::{ADMIN, CLUSTER, Testbed, VIEWER, cluster, proxied};

use super::{EXEC, SPDY, refusal, upgrade_as};

async fn agreeable() -> RawMember {
    RawMember::always(Act::upgrade("websocket", b"")).await
}

#[tokio::test]
async fn who_may_only_read_may_upgrade_nothing_but_watches() {
    let member = agreeable().await;
    let testbed = Testbed::with(&member).await;
    for (method, protocol, rest) in [
        ("GET", "websocket", EXEC),
        ("POST", SPDY, EXEC),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/attach?stdin=true"),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/portforward?ports=80"),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/%65xec?command=sh"),
        ("GET", "websocket", "//api/v1/namespaces/ns/pods/p/exec/"),
        // A kubelet serves exec, attach and port-forward by paths of its own, and requires no more
        // than `get nodes/proxy`.
        ("GET", "websocket", "/api/v1/nodes/n/proxy/exec/ns/p/c?command=id&output=1"),
        ("GET", "websocket", "/api/v1/nodes/n/proxy/exec/ns/p/c?command=id&output=1&watch=true"),
        ("GET", "websocket", "/api/v1/nodes/n/%70roxy/e%78ec/ns/p/c?command=id&watch=1"),
        ("GET", "websocket", "/api/v1/nodes/n:10250/proxy/attach/ns/p/c?input=1"),
        ("GET", "websocket", "/api/v1/nodes/https:n:10250/proxy/portForward/ns/p?port=80"),
        ("GET", "websocket", "/api/v1/namespaces/ns/services/s/proxy/terminal?watch=true"),
        ("GET", "websocket", "/api/v1/namespaces/ns/pods/p/exec?command=sh&watch=true"),
        // A watch is of a collection: these have names, or may have them for a server that reads
        // them otherwise.
        (
            "GET",
            "websocket",
            "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/vm/console?watch=true",
        ),
        ("GET", "websocket", "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances//vnc?watch=true"),
        (
            "GET",
            "websocket",
            "/apis/subresources.kubevirt.io/v1/watch/namespaces/ns/virtualmachineinstances/vm/console",
        ),
        ("GET", "websocket", "/apis/example.com/v1/namespaces/ns/things/t?watch=1"),
        ("GET", "websocket", "/apis/example.com/v1/things%5Ct%5Cterminal?watch=1"),
        ("GET", "websocket", "/terminal?watch=true"),
        // Whatever it may be, it is no watch.
        ("GET", "websocket", "/apis/example.com/v1/namespaces/ns/things/t/terminal"),
        ("GET", "websocket", "/api/v1/pods?watch=false"),
        ("GET", "websocket", "/api/v1/pods?command=watch%3Dtrue"),
    ] {
        let asked = upgrade_as(VIEWER, &testbed, (method, &proxied(CLUSTER, rest)), protocol, &[]).await;
        let message = refusal(asked).await.status_message(403, "Forbidden");
        let attributes = format!(
            "clustergateways.cluster.core.oam.dev \"{CLUSTER}\" is forbidden: User \"viewer\" cannot create resource \
             \"clustergateways/proxy\" in API group \"cluster.core.oam.dev\" at the cluster scope"
        );
        assert!(message.starts_with(&attributes), "{method} {rest}: {message}");
    }
    assert_eq!(member.connection_count(), 0);
}

const CONFIG_MAP: &str = "/api/v1/namespaces/ns/configmaps/victim";

#[tokio::test]
async fn an_upgrade_takes_nothing_from_what_a_method_does() {
    let (member, hub) = (agreeable().await, FakeHub::start().await);
    hub.put_secret(cluster(CLUSTER, &member));
    hub.add_token("alices-token", TokenUser::new("alice", &[]));
    hub.on_access(|spec| {
        let verb = &spec["resourceAttributes"]["verb"];
        if verb == "get" || verb == "create" { Decision::allow() } else { Decision::no_opinion("") }
    });
    let testbed = Testbed::builder().hub(&hub).start().await;
    for (method, verb) in [("DELETE", "delete"), ("PUT", "update"), ("PATCH", "patch")] {
        for (protocol, rest) in [("websocket", CONFIG_MAP), (SPDY, CONFIG_MAP), ("websocket", EXEC)] {
            let asked = upgrade_as("alices-token", &testbed, (method, &proxied(CLUSTER, rest)), protocol, &[]).await;
            let message = refusal(asked).await.status_message(403, "Forbidden");
            assert!(message.contains(&format!("cannot {verb} resource")), "{method} {rest}: {message}");
        }
    }
    assert_eq!(member.connection_count(), 0);
}

/// The member would carry it out, and its answer, which is no 101, would look like a failure.
#[tokio::test]
async fn nobody_upgrades_by_a_method_that_changes_something() {
    let member = agreeable().await;
    let testbed = Testbed::with(&member).await;
    for method in ["DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"] {
        let asked = upgrade_as(ADMIN, &testbed, (method, &proxied(CLUSTER, CONFIG_MAP)), "websocket", &[]).await;
        assert_eq!(asked.1.status, 400, "{method}");
        if method != "HEAD" {
            let message = refusal(asked).await.status_message(400, "BadRequest");
            assert_eq!(message, "an upgrade request must use GET or POST", "{method}");
        }
    }
    assert_eq!(member.connection_count(), 0);
}

#[tokio::test]
async fn who_may_read_may_watch_by_websocket() {
    let member = agreeable().await;
    let testbed = Testbed::with(&member).await;
    for rest in
        ["/api/v1/pods?watch=true", "/api/v1/namespaces/ns/pods?resourceVersion=1&watch=1", "/api/v1/watch/pods"]
    {
        let target = proxied(CLUSTER, rest);
        let (_connection, head) = upgrade_as(VIEWER, &testbed, ("GET", &target), "websocket", &[]).await;
        assert_eq!(head.status, 101, "{rest}");
    }
}

#[tokio::test]
async fn the_flag_lets_readers_exec_by_websocket_only() {
    let member = agreeable().await;
    let testbed =
        Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg("--upgrade-verb=get").start().await;
    let target = proxied(CLUSTER, EXEC);
    let (_connection, head) = upgrade_as(VIEWER, &testbed, ("GET", &target), "websocket", &[]).await;
    assert_eq!(head.status, 101);
    let asked = upgrade_as(VIEWER, &testbed, ("POST", &target), SPDY, &[]).await;
    refusal(asked).await.status_message(403, "Forbidden");
    assert_eq!(member.connection_count(), 1);
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let member = agreeable().await;
    let testbed = Testbed::with(&member).await;
    let target = proxied(CLUSTER, EXEC);
    let asked = upgrade_as("no-such-token", &testbed, ("GET", &target), "websocket", &[]).await;
    refusal(asked).await.status_message(401, "Unauthorized");

    let mut connection = testbed.client().h1().await.unwrap();
    let head = connection.upgrade("GET", &target, "websocket", &[]).await.unwrap();
    let message = refusal((connection, head)).await.status_message(403, "Forbidden");
    assert!(message.contains("system:anonymous"), "{message}");
    assert_eq!(member.connection_count(), 0);
}
