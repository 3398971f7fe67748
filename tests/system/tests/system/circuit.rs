//! A member that is away costs its callers the wait of a few dials, not one each; it is found again
//! by itself.

use kit::member::BlackHole;
use kit::wait::{free_port, timely};
use system_tests::prelude::*;

const GAUGE: &str = "cluster_gateway_upstream_circuit_open{cluster=\"c1\"}";

fn secret(url: &str, ca: &str) -> ClusterSecret {
    ClusterSecret::new("vela-system", CLUSTER).endpoint(url).ca(ca).token(MEMBER_TOKEN)
}

async fn gauge(testbed: &Testbed) -> String {
    let metrics = testbed.get("/metrics").await.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(GAUGE)).expect("every cluster has the series");
    line.trim().to_owned()
}

/// Sends requests until the circuit is open; returns the last message.
async fn open_up(testbed: &Testbed, code: u16, reason: &str, failures: usize) -> String {
    let target = proxied(CLUSTER, "/x");
    let mut connection = testbed.connect(Http::H2).await;
    for _ in 0..failures {
        let message = connection.get(&target).await.status_message(code, reason);
        assert!(!message.contains("attempts to connect failed"), "too early: {message}");
    }
    let answer = connection.get(&target).await;
    assert_eq!(answer.header("retry-after"), None);
    answer.status_message(503, "ServiceUnavailable")
}

across_http!(opens_after_five_failures_and_finds_the_member_again);

async fn opens_after_five_failures_and_finds_the_member_again(http: Http) {
    let authority = Arc::new(Authority::new("member-ca"));
    let port = free_port().await;
    let testbed = Testbed::builder()
        .cluster(CLUSTER, secret(&format!("https://127.0.0.1:{port}"), &authority.root_pem()))
        .start()
        .await;
    assert_eq!(gauge(&testbed).await, "0");
    let message = open_up(&testbed, 503, "ServiceUnavailable", 5).await;
    assert!(message.contains(&format!("cluster c1 is unreachable: dial tcp 127.0.0.1:{port}: connect: ")), "{message}");
    assert!(message.contains("the last 5 attempts to connect failed; the next attempt is"), "{message}");
    assert_eq!(gauge(&testbed).await, "1");
    let options =
        MemberOptions { address: ([127, 0, 0, 1], port).into(), authority: Some(authority), ..http.member_options() };
    let member = FakeMember::start(options).await;
    member.on_any(|_| Reply::json(200, &json!({})));
    testbed.until(WAIT, &proxied(CLUSTER, "/x"), |answer| answer.status == 200).await;
    assert_eq!((gauge(&testbed).await.as_str(), member.connections_accepted()), ("0", 1));
}

#[tokio::test]
async fn callers_of_a_member_that_swallows_everything_wait_no_more() {
    let hole = BlackHole::start().await;
    let patience = Duration::from_millis(300);
    let testbed = Testbed::builder()
        .cluster(CLUSTER, secret(&format!("https://{}", hole.address()), &Authority::new("ca").root_pem()))
        .arg("--dial-timeout=300ms")
        .arg("--circuit-failures=1")
        .start()
        .await;
    let message = open_up(&testbed, 504, "Timeout", 1).await;
    assert!(message.contains("i/o timeout"), "{message}");
    // Longer than the first pause: at most one dial hangs in it, and only its own caller waits for
    // that.
    let mut connection = testbed.connect(Http::H2).await;
    timely(4 * patience, "thirty callers, one after the other", async || {
        let (started, mut dialled) = (Instant::now(), 0);
        for _ in 0..30 {
            let answer = connection.get(&proxied(CLUSTER, "/x")).await;
            assert!([503, 504].contains(&answer.status), "{}", answer.text());
            dialled += u32::from(answer.status == 504);
        }
        let took = started.elapsed();
        assert!(dialled <= 1 || took >= 4 * patience, "{dialled} of 30 callers waited");
        took
    })
    .await;
}

#[tokio::test]
async fn a_corrected_secret_needs_no_patience() {
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let wrong = format!("https://127.0.0.1:{}", free_port().await);
    let testbed =
        Testbed::builder().cluster(CLUSTER, secret(&wrong, &member.ca_pem())).arg("--circuit-failures=1").start().await;
    open_up(&testbed, 503, "ServiceUnavailable", 1).await;
    testbed.register(CLUSTER, cluster(CLUSTER, &member));
    testbed.until(WAIT, &proxied(CLUSTER, "/x"), |answer| answer.status == 200).await;
    assert_eq!(gauge(&testbed).await, "0");
}

#[tokio::test]
async fn requests_on_open_connections_never_look_at_it() {
    let options = MemberOptions { max_concurrent_streams: 1, ..MemberOptions::default() };
    let member = FakeMember::start(options).await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let proxy = kit::proxy::FakeProxy::start(kit::proxy::ProxyKind::Http).await;
    let secret = cluster(CLUSTER, &member).data("proxy-url", proxy.url());
    let testbed = Testbed::builder().cluster(CLUSTER, secret).arg("--circuit-failures=1").start().await;
    let mut streams = member.streams("/watch");
    let target = proxied(CLUSTER, "/x");
    assert_eq!(testbed.get(&target).await.status, 200);
    // The one stream of the one connection is taken, and no further connection can be had.
    proxy.refuse();
    let mut connection = testbed.connect(Http::H2).await;
    let path = proxied(CLUSTER, "/watch?watch=true");
    let watch = connection.open("GET", &path, &[]);
    let (watch, (_, events)) = tokio::join!(watch, streams.next());
    let mut watch = watch.expect("a response");
    assert_eq!(testbed.get(&target).await.status, 503);
    assert_eq!(gauge(&testbed).await, "1");
    assert!(events.event("ADDED", &json!({})).await);
    watch.event().await;
    drop((watch, events));
    testbed.until(WAIT, &target, |answer| answer.status == 200).await;
    assert_eq!(gauge(&testbed).await, "1", "no dial was needed for it");
}
