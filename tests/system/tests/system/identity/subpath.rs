//! The second review: a proxied request is on the hub what it is on the member, or it does not get
//! there.

use system_tests::prelude::*;

use super::{Fixture, target};

const FLAG: &str = "--authorize-proxy-subpath";
/// Every review reaches the hub.
const FORGETFUL: &[&str] =
    &[FLAG, "--authorization-webhook-cache-authorized-ttl=0s", "--authorization-webhook-cache-unauthorized-ttl=0s"];

fn is_first(spec: &Value) -> bool {
    spec["resourceAttributes"]["resource"] == "clustergateways"
}

/// A fixture where alice may send anything through the gateway, and do there what `allows` says.
async fn fixture(arguments: &[&str], allows: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Fixture {
    let fixture = Fixture::with(Http::H2, arguments).await;
    fixture.hub.add_token("alices-token", TokenUser::new("alice", &["developers"]));
    fixture.hub.on_access(move |spec| {
        if is_first(spec) || allows(spec) { Decision::allow() } else { Decision::no_opinion("RBAC: no rule") }
    });
    fixture
}

impl Fixture {
    async fn alice(&self, http: Http) -> Connection {
        self.connect(http, None).await.bearer("alices-token")
    }

    /// The hub's last review, without the user.
    fn asked(&self) -> Value {
        let spec = self.reviewed();
        assert_eq!((&spec["user"], &spec["groups"]), (&json!("alice"), &json!(["developers", "system:authenticated"])));
        let attributes = spec.get("resourceAttributes").or(spec.get("nonResourceAttributes"));
        attributes.expect("a review is about something").clone()
    }
}

/// Attributes of a review about pods; `more` adds to them.
fn pods(verb: &str, more: &Value) -> Value {
    let mut attributes = json!({"verb": verb, "version": "v1", "resource": "pods"});
    for (key, value) in more.as_object().into_iter().flatten() {
        attributes[key] = value.clone();
    }
    attributes
}

/// Requests, and their meaning on the member.
fn matrix() -> Vec<(&'static str, &'static str, Value)> {
    let (in_ns, named) = (json!({"namespace": "ns"}), json!({"namespace": "ns", "name": "p"}));
    let sub = |name: &str| json!({"namespace": "ns", "name": "p", "subresource": name});
    let path = |path: &str, verb: &str| json!({"path": path, "verb": verb});
    let selected = json!({"namespace": "ns", "labelSelector": {"rawSelector": "app=web"}});
    vec![
        ("GET", "/api/v1/namespaces/ns/pods/p", pods("get", &named)),
        ("GET", "/api/v1/pods", pods("list", &json!({}))),
        ("GET", "/api/v1/namespaces/ns/pods?labelSelector=app%3Dweb&limit=5", pods("list", &selected)),
        ("GET", "/api/v1/namespaces/ns/pods?watch=true", pods("watch", &in_ns)),
        ("GET", "/api/v1/watch/namespaces/ns/pods", pods("watch", &in_ns)),
        ("DELETE", "/api/v1/namespaces/ns/pods", pods("deletecollection", &in_ns)),
        ("DELETE", "/api/v1/namespaces/ns/pods/p", pods("delete", &named)),
        ("PATCH", "/api/v1/namespaces/ns/pods/p?dryRun=All", pods("patch", &named)),
        ("PUT", "/api/v1/namespaces/ns/pods/p/status", pods("update", &sub("status"))),
        ("GET", "/api/v1/namespaces/ns/pods/p/log?follow=false", pods("get", &sub("log"))),
        ("POST", "/api/v1/namespaces/ns/pods/p/exec?command=sh", pods("create", &sub("exec"))),
        // The member decodes once, so that these mean the same as the ones above.
        ("GET", "/api/v1/namespaces%2Fns%2Fpods%2Fp", pods("get", &named)),
        ("GET", "/api/v1/namespaces/ns/pods/p%2Flog", pods("get", &sub("log"))),
        ("GET", "/%61pi/v1/namespaces/ns/%70ods/p", pods("get", &named)),
        ("GET", "/api/v1/namespaces/ns/pods/%2570", pods("get", &json!({"namespace": "ns", "name": "%70"}))),
        // Slashes at the ends do not count.
        ("GET", "//api/v1/namespaces/ns/pods/p/", pods("get", &named)),
        ("GET", "/%2Fapi/v1/namespaces/ns/pods/p/%2f", pods("get", &named)),
        // The path behind a proxy is the workload's, slashes and all: nothing there changes the
        // review.
        ("GET", "/api/v1/namespaces/ns/pods/p/proxy//x", pods("get", &sub("proxy"))),
        ("GET", "/api/v1/namespaces/ns/pods/p/proxy/a%5Cb//c", pods("get", &sub("proxy"))),
        (
            "POST",
            "/apis/apps/v1/namespaces/ns/deployments",
            json!({"verb": "create", "group": "apps", "version": "v1", "resource": "deployments", "namespace": "ns"}),
        ),
        ("GET", "", path("/", "get")),
        ("GET", "/api", path("/api", "get")),
        ("GET", "/apis/apps/v1", path("/apis/apps/v1", "get")),
        ("GET", "/openapi/v3/apis/apps/v1?hash=x", path("/openapi/v3/apis/apps/v1", "get")),
        ("POST", "/version", path("/version", "post")),
        // Open to every caller at the gateway, and not therefore on members.
        ("GET", "/healthz", path("/healthz", "get")),
    ]
}

across_http!(what_is_reviewed_is_what_the_member_gets);

async fn what_is_reviewed_is_what_the_member_gets(http: Http) {
    let fixture = fixture(FORGETFUL, |_| true).await;
    let mut connection = fixture.alice(http).await;
    for (method, rest, expected) in matrix() {
        let answer = connection.call(method, &proxied(CLUSTER, rest), &[], b"").await;
        assert_eq!(answer.status, 200, "{method} {rest}: {}", answer.text());
        assert_eq!(fixture.asked(), expected, "{method} {rest}");
        let request = fixture.member.next_request().await;
        assert_eq!(request.target, if rest.is_empty() { "/" } else { rest }, "forwarded as it was reviewed");
        assert_eq!(request.header("authorization"), Some(&*format!("Bearer {MEMBER_TOKEN}")));
    }
}

#[tokio::test]
async fn what_the_hub_does_not_grant_does_not_reach_the_member() {
    let fixture = fixture(FORGETFUL, |spec| spec["resourceAttributes"]["namespace"] == "mine").await;
    let mut connection = fixture.alice(Http::H2).await;
    assert_eq!(connection.get(&proxied(CLUSTER, "/api/v1/namespaces/mine/pods/p")).await.status, 200);
    fixture.member.next_request().await;
    for (method, rest, what) in [
        (
            "GET",
            "/api/v1/namespaces/ns/pods/p",
            "pods \"p\" is forbidden: User \"alice\" cannot get resource \"pods\" in API group \"\" in the namespace \"ns\"",
        ),
        (
            "GET",
            "/api/v1/namespaces%2Fns%2Fpods%2Fp",
            "pods \"p\" is forbidden: User \"alice\" cannot get resource \"pods\" in API group \"\" in the namespace \"ns\"",
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/ns/deployments",
            "deployments.apps is forbidden: User \"alice\" cannot deletecollection resource \"deployments\" in API group \"apps\" in the namespace \"ns\"",
        ),
        (
            "GET",
            "/api/v1/pods?watch=1",
            "pods is forbidden: User \"alice\" cannot watch resource \"pods\" in API group \"\" at the cluster scope",
        ),
        ("GET", "/metrics", "forbidden: User \"alice\" cannot get path \"/metrics\""),
    ] {
        let answer = connection.call(method, &proxied(CLUSTER, rest), &[], b"").await;
        let message = answer.status_message(403, "Forbidden");
        assert_eq!(
            message,
            format!("{what}: the hub does not allow it for requests to cluster {CLUSTER}: RBAC: no rule")
        );
    }
    // Nor does a caller learn here which clusters there are.
    connection.get(&proxied("nowhere", "/api/v1/pods")).await.status_message(403, "Forbidden");
    assert_eq!(fixture.member.request_count(), 1);
}

/// A proxy before a member may join slashes, and take `\` for one. Then these are about something
/// else than by Kubernetes' rules.
const SEEN_OTHERWISE_ONCE_NORMALISED: &[(&str, &str)] = &[
    ("GET", "/api/v1/namespaces//pods/p"),
    // pods/log
    ("GET", "/api/v1/namespaces/ns/pods/p//log"),
    ("GET", "/api/v1/namespaces/ns/pods/p%2F%2Flog"),
    ("GET", "/api/v1/namespaces/ns/pods/p%2f%2flog"),
    ("GET", "/api/v1/namespaces/ns/pods/p/%2Flog"),
    ("GET", "/api/v1/namespaces/ns/pods/p\\log"),
    ("GET", "/api/v1/namespaces/ns/pods/p%5Clog"),
    ("GET", "/api/v1/namespaces/ns/pods/p%5clog"),
    // A token of the account.
    ("POST", "/api/v1/namespaces/ns/serviceaccounts/sa//token"),
    ("POST", "/api/v1/namespaces/ns/serviceaccounts/sa%2f/token"),
    // The kubelet: this `proxy` is no subresource by Kubernetes' rules.
    ("GET", "/api/v1/nodes/n//proxy/pods"),
    ("GET", "/api/v1/nodes/n%2F%2Fproxy/pods"),
    ("GET", "/api/v1/nodes//n/proxy/pods"),
    // No resource, but a path, which every user may read.
    ("GET", "/api/v1\\secrets"),
    ("GET", "/api/v1%5Csecrets"),
    ("GET", "/api/v1%5csecrets"),
    ("GET", "/\\api/v1/secrets"),
    ("GET", "/api/v1/secrets\\"),
    ("GET", "/version//x"),
];

across_http!(paths_that_can_be_read_in_two_ways_reach_neither_review_nor_member);

async fn paths_that_can_be_read_in_two_ways_reach_neither_review_nor_member(http: Http) {
    let fixture = fixture(FORGETFUL, |_| true).await;
    let mut connection = fixture.alice(http).await;
    for rest in ["/api/v1/secrets%zz", "/api/v1/secrets%", "/api/v1/secrets/%2", "/apis/%%32e/secrets"] {
        let answer = connection.get(&proxied(CLUSTER, rest)).await;
        let message = answer.status_message(400, "BadRequest");
        assert!(message.contains("two hexadecimal digits"), "{rest}: {message}");
    }
    for (method, rest) in SEEN_OTHERWISE_ONCE_NORMALISED {
        let answer = connection.call(method, &proxied(CLUSTER, rest), &[], b"").await;
        let message = answer.status_message(400, "BadRequest");
        assert!(message.contains("'//'") && message.contains("'\\'"), "{method} {rest}: {message}");
    }
    assert!(fixture.hub.access_reviews().iter().all(is_first));
    assert_eq!(fixture.member.request_count(), 0);
    // In the query they are the member's business.
    assert_eq!(connection.get(&proxied(CLUSTER, "/api/v1/secrets?x=%zz")).await.status, 200);
    assert_eq!(connection.get(&proxied(CLUSTER, "/api/v1/secrets?x=a//b%5Cc")).await.status, 200);
}

#[tokio::test]
async fn without_the_second_review_slashes_are_the_members_business() {
    let fixture = fixture(&[], |_| false).await;
    let mut connection = fixture.alice(Http::H2).await;
    for (method, rest) in SEEN_OTHERWISE_ONCE_NORMALISED {
        assert_eq!(connection.call(method, &proxied(CLUSTER, rest), &[], b"").await.status, 200, "{method} {rest}");
        assert_eq!(fixture.member.next_request().await.target, *rest);
    }
}

#[tokio::test]
async fn upgrades_that_act_on_pods_are_creations() {
    let fixture = fixture(FORGETFUL, |_| false).await;
    for (method, rest, verb, subresource) in [
        ("GET", "/api/v1/namespaces/ns/pods/p/exec?command=sh", "create", "exec"),
        ("GET", "/api/v1/namespaces/ns/pods/p/attach", "create", "attach"),
        ("GET", "/api/v1/namespaces/ns/pods/p/portforward", "create", "portforward"),
        ("GET", "/api/v1/namespaces/ns/pods/p/%65xec?command=sh", "create", "exec"),
        ("GET", "/api/v1/namespaces/ns/pods/p%2Fexec?command=sh", "create", "exec"),
        ("POST", "/api/v1/namespaces/ns/pods/p/exec?command=sh", "create", "exec"),
        ("GET", "/api/v1/namespaces/ns/pods/p/proxy", "get", "proxy"),
    ] {
        let mut connection = fixture.testbed.client().h1().await.unwrap();
        let headers = [("Authorization", "Bearer alices-token")];
        let head = connection.upgrade(method, &proxied(CLUSTER, rest), "websocket", &headers).await.unwrap();
        assert_eq!(head.status, 403, "{rest}");
        let expected = json!({"namespace": "ns", "name": "p", "subresource": subresource});
        assert_eq!(fixture.asked(), pods(verb, &expected), "{method} {rest}");
    }
    assert_eq!(fixture.member.request_count(), 0);
}

#[tokio::test]
async fn both_reviews_are_needed_and_neither_may_fail() {
    let fixture = fixture(&[FLAG], |_| true).await;
    let mut connection = fixture.alice(Http::H2).await;
    fixture.hub.on_access(|spec| if is_first(spec) { Decision::no_opinion("") } else { Decision::allow() });
    let message = connection.get(&target()).await.status_message(403, "Forbidden");
    assert!(message.contains("clustergateways/proxy"), "{message}");
    assert_eq!(fixture.hub.access_reviews().len(), 1, "who may not enter is asked nothing more");

    fixture.hub.on_access(|_| Decision::allow());
    let other = proxied(CLUSTER, "/api/v1/nodes");
    let mut connection = fixture.alice(Http::H2).await;
    assert_eq!(connection.call("PUT", &other, &[], b"").await.status, 200);
    fixture.hub.fail(Call::AccessReview, Fault::Status(503));
    // The first answer is remembered, the second is not there.
    connection.call("PUT", &target(), &[], b"").await.status_message(500, "InternalError");
    assert_eq!(fixture.member.request_count(), 1);
}

#[tokio::test]
async fn without_a_hub_the_policy_decides_by_cluster_and_verb() {
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::full(200, &[], ""));
    let testbed = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg(FLAG).start().await;
    let mut viewer = testbed.anonymous(Http::H2).await.bearer(system_tests::VIEWER);
    for rest in ["/api/v1/pods", "/api/v1/pods?watch=true", "/api/v1/namespaces/ns/secrets/s", "/metrics"] {
        assert_eq!(viewer.get(&proxied(CLUSTER, rest)).await.status, 200, "{rest}");
    }
    viewer.call("DELETE", &proxied(CLUSTER, "/api/v1/pods"), &[], b"").await.status_message(403, "Forbidden");
    let mut admin = testbed.connect(Http::H2).await;
    assert_eq!(admin.call("DELETE", &proxied(CLUSTER, "/api/v1/pods"), &[], b"").await.status, 200);
}
