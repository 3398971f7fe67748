//! `/metrics` after events, under the names that dashboards know.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::member::{FakeMember, Reply};
use kit::pki::{Authority, Leaf};
use kit::wait::WAIT;
use system_tests::{ADMIN, CLUSTER, Http, Testbed, VIEWER, across_http, cluster, proxied};

const PODS: &str = "/api/v1/namespaces/ns/pods";

async fn member() -> FakeMember {
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::full(200, &[], "from the member"));
    member
}

/// Whether the exposition has exactly this line.
fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

/// Waits until all of `lines` are there.
async fn until(testbed: &Testbed, lines: &[String]) -> String {
    testbed.until(WAIT, "/metrics", |answer| lines.iter().all(|line| has(&answer.text(), line))).await.text()
}

fn by_resource(resource: &str, verb: &str, code: u16, count: u64) -> String {
    let labels = format!("resource=\"{resource}\",verb=\"{verb}\",code=\"{code}\"");
    format!("ocm_proxy_proxied_resource_requests_by_resource_total{{{labels}}} {count}")
}

fn by_cluster(cluster: &str, code: u16, count: u64) -> String {
    format!("ocm_proxy_proxied_requests_by_cluster_total{{cluster=\"{cluster}\",code=\"{code}\"}} {count}")
}

fn durations(resource: &str, verb: &str, cluster: &str, code: u16, count: u64) -> String {
    let labels = format!("resource=\"{resource}\",verb=\"{verb}\",cluster=\"{cluster}\",code=\"{code}\"");
    format!("ocm_proxy_proxied_request_duration_seconds_count{{{labels}}} {count}")
}

across_http!(requests_count_under_what_the_client_got);

async fn requests_count_under_what_the_client_got(http: Http) {
    let member = http.member().await;
    member.on_any(|request| Reply::full(if request.method == "POST" { 201 } else { 200 }, &[], "from the member"));
    for nothing in [&format!("{PODS}/gone"), "/api/v1/made-up"] {
        member.on(nothing, |_| Reply::not_found());
    }
    let down = FakeMember::start(Http::H2.member_options()).await;
    let secret = cluster("down", &down);
    drop(down);
    let testbed = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).cluster("down", secret).start().await;
    let mut connection = testbed.connect(http).await;
    for (cluster, method, rest, code) in [
        (CLUSTER, "GET", PODS.to_owned(), 200),
        (CLUSTER, "GET", format!("{PODS}/p"), 200),
        (CLUSTER, "GET", format!("{PODS}/gone"), 404),
        (CLUSTER, "GET", "/api/v1/made-up".to_owned(), 404),
        (CLUSTER, "POST", PODS.to_owned(), 201),
        (CLUSTER, "GET", "/version".to_owned(), 200),
        (CLUSTER, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/d".to_owned(), 200),
        ("down", "PATCH", PODS.to_owned(), 503),
        ("nowhere", "GET", PODS.to_owned(), 404),
    ] {
        let answer = connection.call(method, &proxied(cluster, &rest), &[], b"").await;
        assert_eq!(answer.status, code, "{method} {cluster} {rest}: {}", answer.text());
    }
    let text = until(
        &testbed,
        &[
            by_resource("pods", "get", 200, 2),
            by_resource("pods", "get", 404, 1),
            by_resource("other", "get", 404, 1),
            by_resource("pods", "create", 201, 1),
            by_resource("pods", "patch", 503, 1),
            by_resource("", "get", 200, 1),
            by_resource("deployments", "delete", 200, 1),
            by_cluster(CLUSTER, 200, 4),
            by_cluster(CLUSTER, 201, 1),
            by_cluster(CLUSTER, 404, 2),
            by_cluster("down", 503, 1),
            durations("pods", "get", CLUSTER, 200, 2),
            durations("pods", "patch", "down", 503, 1),
        ],
    )
    .await;
    assert!(!text.contains("nowhere") && !text.contains("made-up"), "callers make no series by making up names");
}

#[tokio::test]
async fn those_who_may_not_are_not_counted_as_proxied() {
    let member = member().await;
    let testbed = Testbed::with(&member).await;
    let mut viewer = testbed.anonymous(Http::H2).await.bearer(VIEWER);
    assert_eq!(viewer.call("DELETE", &proxied(CLUSTER, PODS), &[], b"").await.status, 403);
    assert_eq!(viewer.get(&proxied(CLUSTER, PODS)).await.status, 200);
    let text = until(&testbed, &[by_cluster(CLUSTER, 200, 1)]).await;
    assert!(!text.contains("ocm_proxy_proxied_requests_by_cluster_total{cluster=\"c1\",code=\"403\"}"), "{text}");
}

#[tokio::test]
async fn upgrades_count_as_101_when_they_are_over() {
    let member = member().await;
    member.on(&format!("{PODS}/p/exec"), |_| Reply::upgrade_echo("websocket"));
    let testbed = Testbed::with(&member).await;
    let mut exec = testbed.client().h1().await.expect("the gateway accepts connections");
    let (target, bearer) = (proxied(CLUSTER, &format!("{PODS}/p/exec")), format!("Bearer {ADMIN}"));
    let head = exec.upgrade("GET", &target, "websocket", &[("Authorization", &bearer)]).await.expect("a head");
    assert_eq!(head.status, 101);
    let text = until(&testbed, &["cluster_gateway_upgrades_in_flight{cluster=\"c1\"} 1".to_owned()]).await;
    assert!(has(&text, "cluster_gateway_requests_in_flight{cluster=\"c1\"} 0"), "{text}");
    assert!(!has(&text, &by_cluster(CLUSTER, 101, 1)));
    drop(exec);
    let text = until(&testbed, &[by_resource("pods", "get", 101, 1), by_cluster(CLUSTER, 101, 1)]).await;
    assert!(has(&text, "cluster_gateway_requests_total{cluster=\"c1\",verb=\"GET\",code=\"101\"} 1"), "{text}");
    assert!(has(&text, "cluster_gateway_request_duration_seconds_count{cluster=\"c1\"} 0"), "{text}");
}

#[tokio::test]
async fn clients_that_leave_count_as_499() {
    let member = member().await;
    member.on(PODS, |_| Reply::Never);
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, PODS);
    assert_eq!(connection.get(&proxied(CLUSTER, &format!("{PODS}/p"))).await.status, 200);
    member.next_request().await;
    {
        let waiting = connection.open("GET", &target, &[]);
        tokio::select! {
            answer = waiting => panic!("answered: {answer:?}"),
            _ = member.next_request() => {}
        }
    }
    drop(connection);
    until(&testbed, &[by_resource("pods", "get", 499, 1), by_cluster(CLUSTER, 499, 1)]).await;
}

#[tokio::test]
async fn a_removed_cluster_takes_its_series_along() {
    let member = member().await;
    let testbed = Testbed::builder()
        .cluster(CLUSTER, cluster(CLUSTER, &member))
        .cluster("c2", cluster("c2", &member))
        .start()
        .await;
    for name in [CLUSTER, "c2"] {
        assert_eq!(testbed.get(&proxied(name, PODS)).await.status, 200);
    }
    until(&testbed, &[by_cluster(CLUSTER, 200, 1), by_cluster("c2", 200, 1)]).await;
    testbed.unregister("c2");
    let gone = |text: String| !text.contains("cluster=\"c2\"");
    let text = testbed.until(WAIT, "/metrics", |answer| gone(answer.text())).await.text();
    assert!(has(&text, &by_cluster(CLUSTER, 200, 1)) && has(&text, &by_resource("pods", "get", 200, 2)), "{text}");
}

#[tokio::test]
async fn they_can_be_switched_off() {
    let member = member().await;
    let testbed =
        Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg("--ocm-proxy-metrics=false").start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PODS)).await.status, 200);
    let text = testbed.get("/metrics").await.text();
    assert!(!text.contains("ocm_proxy"), "{text}");
}

#[tokio::test]
async fn what_a_secret_says_of_its_credentials_end_is_a_series_as_long_as_it_says_so() {
    let token = |claims: &str| format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims));
    let member = member().await;
    let issued = Authority::new("members").issue(&Leaf::client("c"));
    let testbed = Testbed::builder()
        .cluster(CLUSTER, cluster(CLUSTER, &member).token(&token(r#"{"exp":1900000000}"#)))
        .cluster("certified", cluster("certified", &member).certificate(&issued))
        .start()
        .await;
    let of = |cluster: &str| format!("cluster_gateway_credential_expiry_timestamp_seconds{{cluster=\"{cluster}\"}} ");
    let text = until(&testbed, &[of(CLUSTER) + "1900000000"]).await;
    assert!(text.contains(&of("certified")), "{text}");
    testbed.register(CLUSTER, cluster(CLUSTER, &member).token(&token(r#"{"exp":2000000000}"#)));
    until(&testbed, &[of(CLUSTER) + "2000000000"]).await;
    testbed.register(CLUSTER, cluster(CLUSTER, &member).token(&token("{}")));
    testbed.until(WAIT, "/metrics", |answer| !answer.text().contains(&of(CLUSTER))).await;
}
