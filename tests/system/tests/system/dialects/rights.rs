//! Rights, and the answers of callers without them: one review, whatever the spelling.

use system_tests::prelude::*;

use super::{ALICE, Fixture};

across_dialects!(
    the_review_is_of_the_clusters_proxy,
    who_may_not_is_told_so_and_reaches_nobody,
    strangers_learn_nothing_of_clusters,
    a_cluster_that_is_not_there_is_named,
    the_members_refusal_is_its_own_and_its_401_is_not_the_callers,
    the_second_review_is_of_what_the_member_does,
    a_right_under_one_review_is_none_under_another,
);

async fn the_review_is_of_the_clusters_proxy(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut connection = fixture.connect(Http::H2).await;
    for (method, verb) in
        [("GET", "get"), ("POST", "create"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete")]
    {
        // The path on the member says nothing about the cluster's proxy.
        let target =
            fixture.path("/apis/apps/v1/namespaces/ns/deployments/d?watch=true&fieldSelector=metadata.name%3Dx");
        assert_eq!(connection.call(method, &target, &[], b"").await.status, 200, "{method}");
        let mut reviewed = fixture.hub.access_reviews().pop().expect("a review");
        let attributes = reviewed["resourceAttributes"].take();
        let (group, resource) = dialect.reviewed();
        let expected = json!({"verb": verb, "group": group, "version": "v1alpha1", "resource": resource,
            "subresource": "proxy", "name": CLUSTER});
        assert_eq!((attributes, &reviewed["user"]), (expected, &json!("alice")), "{method}");
    }
    assert_eq!(fixture.hub.access_reviews().len(), 5);
}

async fn who_may_not_is_told_so_and_reaches_nobody(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    fixture.hub.on_access(|_| Decision::no_opinion("no binding"));
    for client in [Http::H1, Http::H2] {
        let answer = fixture.connect(client).await.call("DELETE", &fixture.path("/x"), &[], b"").await;
        let message = answer.status_message(403, "Forbidden");
        let (group, resource) = dialect.reviewed();
        let expected = format!(
            "{resource}.{group} \"{CLUSTER}\" is forbidden: User \"alice\" cannot delete resource \"{resource}/proxy\" in API \
             group \"{group}\" at the cluster scope: no binding"
        );
        assert_eq!(message, expected);
    }
    assert_eq!(fixture.member.connections_accepted(), 0);
}

async fn strangers_learn_nothing_of_clusters(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    fixture.hub.on_access(|_| Decision::no_opinion(""));
    for cluster in [CLUSTER, "nowhere"] {
        let target = dialect.path_of(cluster, "/api");
        let mut connection = dialect.connect(&fixture.testbed, Http::H2).await;
        let message = connection.get(&target).await.status_message(403, "Forbidden");
        assert!(message.contains("system:anonymous") && !message.contains("no such"), "{message}");
        let mut connection = dialect.connect(&fixture.testbed, Http::H2).await.bearer("no-such-token");
        assert_eq!(connection.get(&target).await.status_message(401, "Unauthorized"), "Unauthorized");
    }
    assert_eq!(fixture.member.connections_accepted(), 0);
}

async fn a_cluster_that_is_not_there_is_named(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let answer = fixture.connect(Http::H2).await.get(&dialect.path_of("no.where", "/api")).await;
    assert_eq!(answer.status_message(404, "NotFound"), "no such cluster no.where");
}

async fn the_members_refusal_is_its_own_and_its_401_is_not_the_callers(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let refusal = json!({"kind": "Status", "code": 403, "message": "pods is forbidden: says the member"});
    let said = refusal.clone();
    fixture.member.on("/secret", move |_| Reply::json(403, &said));
    fixture.member.on("/who", |_| Reply::status(401, "Unauthorized"));
    let mut connection = fixture.connect(Http::H2).await;
    let answer = connection.get(&fixture.path("/secret")).await;
    assert_eq!((answer.status, answer.json()), (403, refusal));
    let message = connection.get(&fixture.path("/who")).await.status_message(502, "InternalError");
    assert!(message.contains("rejected the registered credential"), "{message}");
}

async fn the_second_review_is_of_what_the_member_does(dialect: Dialect) {
    let hub = super::hub().await;
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::json(200, &json!({})));
    hub.put_secret(cluster(CLUSTER, &member));
    let testbed = dialect.on(Testbed::builder().hub(&hub).arg("--authorize-proxy-subpath")).start().await;
    let mut connection = dialect.connect(&testbed, Http::H2).await.bearer(ALICE);
    assert_eq!(connection.get(&dialect.path("/api/v1/namespaces/ns/p%6Fds/p/log")).await.status, 200);
    let second = &hub.access_reviews()[1]["resourceAttributes"];
    let expected = json!({"verb": "get", "version": "v1", "resource": "pods", "subresource": "log", "namespace": "ns", "name": "p"});
    assert_eq!(second, &expected);
    for rest in ["/api/v1/pods/p//log", "/api/v1/pods%zz"] {
        connection.get(&dialect.path(rest)).await.status_message(400, "BadRequest");
    }
}

async fn a_right_under_one_review_is_none_under_another(dialect: Dialect) {
    let (hub, member) = (super::hub().await, Http::H2.member().await);
    member.on_any(|_| Reply::json(200, &json!({})));
    hub.put_secret(cluster(CLUSTER, &member));
    let (group, resource) = dialect.reviewed();
    hub.on_access(move |spec| {
        let asked = &spec["resourceAttributes"];
        let is_it = asked["group"] == group && asked["resource"] == resource;
        if is_it { Decision::allow() } else { Decision::no_opinion("") }
    });
    let builder = Testbed::builder().hub(&hub).arg("--kcp-dialect").arg("--ocm-user-server-listen=127.0.0.1:0");
    let testbed = Dialect::Karmada.on(builder).start().await;
    for other in [Dialect::Native, Dialect::Kcp, Dialect::UserServer, Dialect::Karmada] {
        let answer = other.connect(&testbed, Http::H2).await.bearer(ALICE).get(&other.path("/api")).await;
        assert_eq!(answer.status == 200, other.reviewed() == dialect.reviewed(), "{other:?}: {}", answer.text());
    }
}
