//! Methods, paths and queries: raw bytes in, the same bytes out, below a base path that nothing
//! escapes.

use system_tests::prelude::*;

use super::agreeable;

across_versions!(every_method_arrives, paths_and_queries_arrive_byte_for_byte);
across_dialects!(an_absolute_target_is_the_same_request);
across_http!(dot_segments_are_refused_in_every_spelling, what_only_looks_like_the_proxy_path_is_not_found);

/// Targets on a member: no part of them is decoded, cleaned, sorted or collapsed.
pub(crate) const TARGETS: &[&str] = &[
    "/",
    "/api/v1/pods",
    "/api/v1/namespaces/a%2Fb/pods/",
    "//api///v1//",
    "/a/?b=2&a=1&b=1",
    "/a?x=1+2&y=%20&z",
    "/a?empty=&novalue&=value&&",
    "/a?c=1;d=2",
    "/a?",
    "/a??b?c",
    "/a?path=/x&impersonate=false&q=/../y",
    "/%20%25%3F%23%e2%82%AC",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node,@&=+$",
    "/~!*'()-._",
    "/api/v1/namespaces/ns/pods?dryRun=All&fieldManager=a%20b&timeout=5s",
    "/a..b/.../..c/d..",
    "/%252e%252e/x",
    "/a{b}\"c^d|e",
    "/api/v1/namespaces/ns/pods/p/log?container=a&timestamps=true&tailLines=1",
];

/// Every spelling of a `.` or `..` segment that some server or intermediary would take for one.
pub(crate) const DOTTED: &[&str] = &[
    "/..",
    "/.",
    "/../secrets",
    "/api/../../x",
    "/api/..",
    "/api/.",
    "/api/./v1",
    "//../x",
    "/%2e%2e/x",
    "/%2E%2e",
    "/.%2e/x",
    "/%2e./x",
    "/%2e",
    "/api%2f..%2f..",
    "/..%2Fx",
    "/\\..\\x",
    "/..\\x",
    "/api%5c..%5Cx",
    "/api/..?watch=true",
];

async fn every_method_arrives(versions: Versions) {
    let member = agreeable(versions.member).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] {
        let body: &[u8] = if matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") { b"{}" } else { b"" };
        let answer = connection.call(method, &proxied(CLUSTER, "/api/v1/pods"), &[], body).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.text());
        let request = member.next_request().await;
        assert_eq!((request.method.as_str(), request.path(), &request.body()[..]), (method, "/api/v1/pods", body));
    }
    assert_eq!(member.connections_accepted(), 1, "one connection carries them all");
}

async fn paths_and_queries_arrive_byte_for_byte(versions: Versions) {
    let member = agreeable(versions.member).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    for target in TARGETS {
        assert_eq!(connection.get(&proxied(CLUSTER, target)).await.status, 200, "{target}");
        assert_eq!(member.next_request().await.target, *target);
    }
}

#[tokio::test]
async fn an_empty_path_means_the_members_root() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    for (sent, arrives) in [("", "/"), ("?", "/?"), ("?a=1", "/?a=1")] {
        assert_eq!(testbed.get(&proxied(CLUSTER, sent)).await.status, 200);
        assert_eq!(member.next_request().await.target, arrives);
    }
}

#[tokio::test]
async fn a_base_path_in_the_endpoint_comes_first() {
    let member = agreeable(Http::H2).await;
    let secret = |base: &str| {
        let endpoint = format!("{}{base}", member.url());
        ClusterSecret::new("vela-system", CLUSTER).endpoint(&endpoint).ca(&member.ca_pem()).token(MEMBER_TOKEN)
    };
    for base in ["/k8s/clusters/c-1%2Fx", "/k8s/clusters/c-1%2Fx/"] {
        let testbed = Testbed::builder().cluster(CLUSTER, secret(base)).start().await;
        for (sent, arrives) in [
            ("/api/v1?x=1", "/k8s/clusters/c-1%2Fx/api/v1?x=1"),
            ("", "/k8s/clusters/c-1%2Fx/"),
            ("?x", "/k8s/clusters/c-1%2Fx/?x"),
            ("//x/", "/k8s/clusters/c-1%2Fx//x/"),
        ] {
            assert_eq!(testbed.get(&proxied(CLUSTER, sent)).await.status, 200);
            assert_eq!(member.next_request().await.target, arrives);
        }
    }
}

async fn dot_segments_are_refused_in_every_spelling(client: Http) {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    for target in DOTTED {
        let answer = connection.get(&proxied(CLUSTER, target)).await;
        answer.status_message(400, "BadRequest");
    }
    assert_eq!((member.request_count(), member.connections_accepted()), (0, 0));
}

async fn what_only_looks_like_the_proxy_path_is_not_found(client: Http) {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    let proxy = proxied(CLUSTER, "");
    let namespaced = proxy.replace("/clustergateways", "/namespaces/vela-system/clustergateways");
    for target in [
        format!("{proxy}foo/api/v1"),
        format!("{proxy}%2Fapi/v1"),
        format!("{namespaced}/api/v1"),
        proxy.replace("/v1alpha1/", "/v1alpha1/proxy/"),
        proxy.replace("clustergateways", "clustergateway%73"),
        format!("/{proxy}/api/v1"),
    ] {
        let answer = connection.get(&target).await;
        answer.status_message(404, "NotFound");
    }
    assert_eq!(member.request_count(), 0);
}

async fn an_absolute_target_is_the_same_request(dialect: Dialect) {
    let member = agreeable(Http::H2).await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.connect(&testbed, Http::H1).await.bearer(ADMIN);
    let target = format!("https://somewhere.example{}", dialect.path("/a%2Fb?x=1"));
    assert_eq!(connection.get(&target).await.status, 200);
    let request = member.next_request().await;
    assert_eq!(request.target, "/a%2Fb?x=1");
    assert_eq!(request.authority, Some(member.address().to_string()));
}

#[tokio::test]
async fn targets_that_are_no_path_reach_nobody() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    for (request, status) in [("OPTIONS *", 400), ("CONNECT member.example:443", 405), ("GET member.example", 400)] {
        let mut connection = testbed.connect(Http::H1).await;
        let (method, target) = request.split_once(' ').expect("a method and a target");
        let answer = within(WAIT, request, connection.try_call(method, target, &[], b"")).await;
        assert_eq!(answer.expect("a clean refusal").status, status, "{request}");
    }
    assert_eq!(member.connections_accepted(), 0);
}
