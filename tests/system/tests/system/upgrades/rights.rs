//! Rights to upgrade: acting on a pod is a write, whatever the method of the request says.

use kit::hub::{Decision, FakeHub, TokenUser};
use kit::member::raw::{Act, RawMember};
use system_tests::{ADMIN, CLUSTER, Dialect, Testbed, TestbedBuilder, VIEWER, across_dialects, cluster};

use super::{EXEC, SPDY, refusal, upgrade_as};

across_dialects!(
    who_may_only_read_may_upgrade_nothing_but_watches,
    an_upgrade_takes_nothing_from_what_a_method_does,
    nobody_upgrades_by_a_method_that_changes_something,
    who_may_read_may_watch_by_websocket,
    the_flag_lets_readers_exec_by_websocket_only,
    strangers_are_turned_away,
);

async fn agreeable() -> RawMember {
    RawMember::always(Act::upgrade("websocket", b"")).await
}

/// A gateway with [`CLUSTER`] through which [`VIEWER`] may `get`. Without a hub, only
/// administrators have rights in Karmada's group.
async fn readable(
    dialect: Dialect,
    member: &RawMember,
    more: fn(TestbedBuilder) -> TestbedBuilder,
) -> (Option<FakeHub>, Testbed) {
    let builder = dialect.on(more(Testbed::builder()));
    if dialect != Dialect::Karmada {
        return (None, builder.cluster(CLUSTER, cluster(CLUSTER, member)).start().await);
    }
    let hub = FakeHub::start().await;
    hub.put_secret(cluster(CLUSTER, member));
    hub.add_token(VIEWER, TokenUser::new("viewer", &[]));
    hub.on_access(|spec| match spec["resourceAttributes"]["verb"].as_str() {
        Some("get") => Decision::allow(),
        _ => Decision::no_opinion(""),
    });
    let testbed = builder.hub(&hub).start().await;
    (Some(hub), testbed)
}

async fn who_may_only_read_may_upgrade_nothing_but_watches(dialect: Dialect) {
    let member = agreeable().await;
    let (_hub, testbed) = readable(dialect, &member, |builder| builder).await;
    let (group, resource) = dialect.reviewed();
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
        let asked = upgrade_as(dialect, VIEWER, &testbed, (method, rest), protocol, &[]).await;
        let message = refusal(asked).await.status_message(403, "Forbidden");
        let attributes = format!(
            "{resource}.{group} \"{CLUSTER}\" is forbidden: User \"viewer\" cannot create resource \
             \"{resource}/proxy\" in API group \"{group}\" at the cluster scope"
        );
        assert!(message.starts_with(&attributes), "{method} {rest}: {message}");
    }
    assert_eq!(member.connection_count(), 0);
}

const CONFIG_MAP: &str = "/api/v1/namespaces/ns/configmaps/victim";

async fn an_upgrade_takes_nothing_from_what_a_method_does(dialect: Dialect) {
    let (member, hub) = (agreeable().await, FakeHub::start().await);
    hub.put_secret(cluster(CLUSTER, &member));
    hub.add_token("alices-token", TokenUser::new("alice", &[]));
    hub.on_access(|spec| {
        let verb = &spec["resourceAttributes"]["verb"];
        if verb == "get" || verb == "create" { Decision::allow() } else { Decision::no_opinion("") }
    });
    let testbed = dialect.on(Testbed::builder().hub(&hub)).start().await;
    for (method, verb) in [("DELETE", "delete"), ("PUT", "update"), ("PATCH", "patch")] {
        for (protocol, rest) in [("websocket", CONFIG_MAP), (SPDY, CONFIG_MAP), ("websocket", EXEC)] {
            let asked = upgrade_as(dialect, "alices-token", &testbed, (method, rest), protocol, &[]).await;
            let message = refusal(asked).await.status_message(403, "Forbidden");
            assert!(message.contains(&format!("cannot {verb} resource")), "{method} {rest}: {message}");
        }
    }
    assert_eq!(member.connection_count(), 0);
}

/// The member would carry it out, and its answer, which is no 101, would look like a failure.
async fn nobody_upgrades_by_a_method_that_changes_something(dialect: Dialect) {
    let member = agreeable().await;
    let testbed = dialect.testbed(&member).await;
    for method in ["DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"] {
        let asked = upgrade_as(dialect, ADMIN, &testbed, (method, CONFIG_MAP), "websocket", &[]).await;
        assert_eq!(asked.1.status, 400, "{method}");
        if method != "HEAD" {
            let message = refusal(asked).await.status_message(400, "BadRequest");
            assert_eq!(message, "an upgrade request must use GET or POST", "{method}");
        }
    }
    assert_eq!(member.connection_count(), 0);
}

async fn who_may_read_may_watch_by_websocket(dialect: Dialect) {
    let member = agreeable().await;
    let (_hub, testbed) = readable(dialect, &member, |builder| builder).await;
    for rest in
        ["/api/v1/pods?watch=true", "/api/v1/namespaces/ns/pods?resourceVersion=1&watch=1", "/api/v1/watch/pods"]
    {
        let (_connection, head) = upgrade_as(dialect, VIEWER, &testbed, ("GET", rest), "websocket", &[]).await;
        assert_eq!(head.status, 101, "{rest}");
    }
}

async fn the_flag_lets_readers_exec_by_websocket_only(dialect: Dialect) {
    let member = agreeable().await;
    let (_hub, testbed) = readable(dialect, &member, |builder| builder.arg("--upgrade-verb=get")).await;
    let (_connection, head) = upgrade_as(dialect, VIEWER, &testbed, ("GET", EXEC), "websocket", &[]).await;
    assert_eq!(head.status, 101);
    let asked = upgrade_as(dialect, VIEWER, &testbed, ("POST", EXEC), SPDY, &[]).await;
    refusal(asked).await.status_message(403, "Forbidden");
    assert_eq!(member.connection_count(), 1);
}

async fn strangers_are_turned_away(dialect: Dialect) {
    let member = agreeable().await;
    let testbed = dialect.testbed(&member).await;
    let asked = upgrade_as(dialect, "no-such-token", &testbed, ("GET", EXEC), "websocket", &[]).await;
    refusal(asked).await.status_message(401, "Unauthorized");

    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    let head = connection.upgrade("GET", &dialect.path(EXEC), "websocket", &[]).await.unwrap();
    let message = refusal((connection, head)).await.status_message(403, "Forbidden");
    assert!(message.contains("system:anonymous"), "{message}");
    assert_eq!(member.connection_count(), 0);
}
