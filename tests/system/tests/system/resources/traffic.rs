//! `clustergateways/traffic`: a gateway's counts for a cluster, and its last failures there.

use system_tests::VIEWER;
use system_tests::prelude::*;

const PODS: &str = "/api/v1/namespaces/ns/pods";

fn path(name: &str) -> String {
    format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{name}/traffic")
}

/// How many ended with this method and code.
fn ended(traffic: &Value, method: &str, code: u16) -> Value {
    let all = traffic["status"]["requests"].as_array().expect("requests");
    let one = all.iter().find(|one| one["method"] == method && one["code"] == code);
    one.map_or(json!(0), |one| one["count"].clone())
}

across_http!(a_gateway_tells_what_it_counted_for_a_cluster);

async fn a_gateway_tells_what_it_counted_for_a_cluster(http: Http) {
    let member = FakeMember::start(http.member_options()).await;
    member.on_any(|_| Reply::full(200, &[], "from the member"));
    let watches = member.streams(PODS);
    let down = FakeMember::start(Http::H2.member_options()).await;
    let secret = cluster("down", &down);
    drop(down);
    let testbed = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).cluster("down", secret).start().await;
    let mut connection = testbed.connect(http).await;
    for _ in 0..3 {
        assert_eq!(connection.get(&proxied(CLUSTER, "/version")).await.status, 200);
    }
    let failed = connection.get(&proxied("down", PODS)).await;
    assert_eq!(failed.status, 503);

    let told = testbed.until(WAIT, &path(CLUSTER), |answer| ended(&answer.json(), "GET", 200) == 3).await.json();
    assert_eq!((&told["kind"], &told["metadata"]["name"]), (&json!("ClusterTraffic"), &json!(CLUSTER)));
    let status = &told["status"];
    let counts = status["duration"]["buckets"].as_array().expect("buckets").iter();
    assert_eq!(counts.map(|bucket| bucket["count"].as_u64().expect("a count")).sum::<u64>(), 3, "{told}");
    assert!(status["replica"].as_str().is_some_and(|name| !name.is_empty()) && status["since"].as_i64() > Some(0));
    assert_eq!((&status["failures"], &status["recentFailures"]), (&json!([]), &json!([])), "of another cluster");

    let told = testbed.until(WAIT, &path("down"), |answer| ended(&answer.json(), "GET", 503) == 1).await.json();
    assert_eq!(told["status"]["failures"], json!([{"side": "member", "count": 1}]));
    let failure = &told["status"]["recentFailures"][0];
    assert_eq!(
        (&failure["verb"], &failure["resource"], &failure["side"]),
        (&json!("list"), &json!("pods"), &json!("member"))
    );
    assert_eq!((&failure["code"], &failure["suppressed"]), (&json!(503), &json!(0)));
    assert!(
        failure["text"].as_str().is_some_and(|text| text.contains("down") && text.contains("dial tcp")),
        "{failure}"
    );
    assert!(failure["time"].as_i64() > Some(1_000_000_000_000) && failure["user"] == "admin", "{failure}");

    // Watches are counted while they are open.
    let mut other = testbed.connect(http).await;
    let watch = other.open("GET", &proxied(CLUSTER, &format!("{PODS}?watch=true")), &[]).await;
    let streams = |count: u64| move |answer: &Answer| answer.json()["status"]["streamsInFlight"] == count;
    let told = testbed.until(WAIT, &path(CLUSTER), streams(1)).await.json();
    assert_eq!(told["status"]["requestsInFlight"], 1, "{told}");
    drop((watch, watches));
    drop(other);
    testbed.until(WAIT, &path(CLUSTER), streams(0)).await;
}

#[tokio::test]
async fn only_who_may_is_told_and_only_of_clusters() {
    let member = FakeMember::start(Http::H2.member_options()).await;
    member.on_any(|_| Reply::full(200, &[], "from the member"));
    let testbed = Testbed::with(&member).await;
    let mut stranger = testbed.anonymous(Http::H2).await;
    assert!([401, 403].contains(&stranger.get(&path(CLUSTER)).await.status));
    let mut viewer = testbed.anonymous(Http::H2).await.bearer(VIEWER);
    assert_eq!(viewer.get(&proxied(CLUSTER, "/version")).await.status, 200);
    assert_eq!(viewer.get(&path(CLUSTER)).await.status, 403, "it is another right");
    let mut connection = testbed.connect(Http::H2).await;
    assert_eq!(connection.get(&path("nowhere")).await.status, 404);
    assert_eq!(connection.call("POST", &path(CLUSTER), &[], b"").await.status, 405);
    assert_eq!(connection.call("GET", &path(CLUSTER), &[("accept", "text/html")], b"").await.status, 406);
}

/// The next owner of a name that was given up begins at nothing, and the streams of the former
/// cluster, which end, count for it no more: requests of users there are not the new owner's
/// business.
#[tokio::test]
async fn the_next_owner_of_a_name_is_told_nothing_of_the_former() {
    for deletion_is_seen in [true, false] {
        let (hub, member) = (FakeHub::start().await, FakeMember::start(Http::H2.member_options()).await);
        member.on_any(|_| Reply::full(302, &[("location", "https://elsewhere.example/")], ""));
        member.on("/version", |_| Reply::full(200, &[], "fine"));
        let mut watches = member.streams(PODS);
        hub.put_secret(cluster(CLUSTER, &member));
        let testbed = Testbed::builder().hub(&hub).start().await;
        hub.watching(Resource::Secrets, 1).await;
        let mut connection = testbed.aggregator_as_admin(&hub, Http::H2).await;
        let mut other = testbed.aggregator_as_admin(&hub, Http::H2).await;
        let mut watch = other.open("GET", &proxied(CLUSTER, &format!("{PODS}?watch=true")), &[]).await.expect("a head");
        let (_, events) = watches.next().await;
        assert_eq!(connection.get(&proxied(CLUSTER, "/private")).await.status, 502);
        let told = connection.get(&path(CLUSTER)).await.json();
        assert_eq!(told["status"]["recentFailures"].as_array().map(Vec::len), Some(1), "{told}");

        let held = Gate::new();
        if !deletion_is_seen {
            hub.hold_watches(Resource::Secrets, &held);
        }
        assert!(hub.delete_secret("vela-system", CLUSTER));
        hub.put_secret(cluster(CLUSTER, &member));
        if !deletion_is_seen {
            hub.compact();
            hub.break_watches();
            held.open();
        }
        let empty = |answer: &Answer| answer.status == 200 && answer.json()["status"]["recentFailures"] == json!([]);
        let told = connection.until(WAIT, &path(CLUSTER), empty).await.json();
        assert_eq!((&told["status"]["requests"], &told["status"]["failures"]), (&json!([]), &json!([])), "{told}");
        assert_eq!((&told["status"]["streamsInFlight"], &told["status"]["requestsInFlight"]), (&json!(0), &json!(0)));
        let series = format!("{{cluster=\"{CLUSTER}\",verb=\"GET\",code=\"502\"}}");
        assert!(!connection.get("/metrics").await.text().contains(&series), "it goes too");

        within(WAIT, "the end of the former watch", events.gone()).await;
        assert!(
            within(WAIT, "its end at the client", watch.chunk()).await.is_err(),
            "a watch that was cut off looks whole"
        );
        let cut = "cluster_gateway_cut_responses_total{side=\"member\"}";
        assert!(!connection.get("/metrics").await.text().contains(cut), "the gateway ended it, not the next owner");
        assert_eq!(connection.get(&proxied(CLUSTER, "/version")).await.status, 200);
        let counted = |answer: &Answer| answer.json()["status"]["requests"] != json!([]);
        let told = connection.until(WAIT, &path(CLUSTER), counted).await.json();
        assert_eq!(told["status"]["requests"], json!([{"method": "GET", "code": 200, "count": 1}]), "{told}");
    }
}

#[tokio::test]
async fn failures_on_the_way_to_a_cluster_are_told_with_it() {
    let (hub, member) = (FakeHub::start().await, FakeMember::start(Http::H2.member_options()).await);
    member.on_any(|_| Reply::full(200, &[], "fine"));
    hub.put_secret(cluster(CLUSTER, &member));
    hub.put_secret(ClusterSecret::new("vela-system", "invalid").endpoint("ftp://192.0.2.7").token("t"));
    hub.on_access(|spec| if spec["user"] == "mallory" { Decision::deny("not she") } else { Decision::allow() });
    let testbed = Testbed::builder().hub(&hub).start().await;
    let user = async |name: &str| testbed.aggregator(&hub, Http::H2).await.with("x-remote-user", name);
    let mut admin = testbed.aggregator_as_admin(&hub, Http::H2).await;

    // A stranger's errors are not the cluster's.
    assert_eq!(user("mallory").await.get(&proxied(CLUSTER, PODS)).await.status, 403);
    hub.fail(Call::AccessReview, Fault::Status(500));
    let mut alice = user("alice").await;
    let refused = alice.get(&proxied(CLUSTER, PODS)).await.status;
    assert!(refused >= 500, "{refused}");
    assert!(alice.get(&proxied("made-up", PODS)).await.status >= 500);
    assert_eq!(admin.get(&proxied("invalid", PODS)).await.status, 503);

    let counted = |answer: &Answer| answer.json()["status"]["requests"] != json!([]);
    for (name, code) in [(CLUSTER, refused), ("invalid", 503)] {
        let told = admin.until(WAIT, &path(name), counted).await.json();
        let status = &told["status"];
        assert_eq!(status["requests"], json!([{"method": "GET", "code": code, "count": 1}]), "{told}");
        assert_eq!(status["failures"], json!([{"side": "hub", "count": 1}]), "{told}");
        let recent = &status["recentFailures"];
        if name == CLUSTER {
            assert_eq!(recent, &json!([]), "callers that may do nothing there would replace all others");
            continue;
        }
        assert_eq!((&recent[0]["user"], &recent[0]["side"]), (&json!("admin"), &json!("hub")), "{told}");
        assert!(recent[0]["text"].as_str().is_some_and(|text| text.contains("its Secret cannot be used")), "{told}");
    }
    assert_eq!(admin.get(&path("made-up")).await.status, 404);
    assert!(!admin.get("/metrics").await.text().contains("made-up"), "names that callers make up leave nothing behind");
}
