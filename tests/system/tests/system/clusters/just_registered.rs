//! A cluster that was registered just now: the hub knows it, the gateway's watch does not yet.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use kit::exposition;
use system_tests::TestbedBuilder;
use system_tests::prelude::*;
use tokio::task::JoinHandle;

use super::{PATH, is_ok, member};

const NAMESPACE: &str = "vela-system";
const SECRETS: Resource = Resource::Secrets;
const MANAGED: Resource = Resource::ManagedClusters;
const ASKED: Call = Call::Get(SECRETS);
/// How long the gateway waits for its watch.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Requests that come while one waits.
const CROWD: usize = 20;

/// A hub whose watch of Secrets sends nothing new before its gate is open.
struct Behind {
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
    gate: Gate,
}

// === impl Behind ===

impl Behind {
    async fn set(configure: impl FnOnce(TestbedBuilder) -> TestbedBuilder) -> Self {
        let (hub, member) = (FakeHub::start().await, member(MemberOptions::default()).await);
        hub.install(MANAGED);
        hub.put_secret(cluster(CLUSTER, &member));
        let testbed = configure(Testbed::builder().hub(&hub)).start().await;
        hub.watching(SECRETS, 1).await;
        let gate = Gate::new();
        hub.hold_watches(SECRETS, &gate);
        Self { hub, member, testbed, gate }
    }

    fn register(&self, name: &str) {
        self.hub.put_secret(cluster(name, &self.member));
    }

    async fn connect(&self, http: Http) -> Connection {
        self.testbed.aggregator_as_admin(&self.hub, http).await
    }

    async fn get(&self, name: &str) -> Answer {
        self.connect(Http::H2).await.get(&proxied(name, PATH)).await
    }

    async fn metrics(&self) -> String {
        self.connect(Http::H2).await.get("/metrics").await.text()
    }

    /// Requests that are not at a member yet.
    async fn in_flight(&self) -> usize {
        let series = "cluster_gateway_requests_in_flight{cluster=\"\"}";
        exposition::value(&self.metrics().await, series).expect("the series is there")
    }

    /// A request that waits, and that the hub has been asked for.
    async fn begin(&self, http: Http, name: &str) -> JoinHandle<Answer> {
        let (mut connection, asked) = (self.connect(http).await, self.hub.calls(ASKED));
        let target = proxied(name, PATH);
        let waiting = tokio::spawn(async move { connection.get(&target).await });
        self.hub.called(ASKED, asked + 1).await;
        waiting
    }
}

fn gone(answer: &Answer) {
    assert!(answer.status_message(404, "NotFound").contains("no such cluster"));
}

async fn answered(waiting: JoinHandle<Answer>) -> Answer {
    within(WAIT, "the answer", waiting).await.expect("no panic")
}

across_http!(a_request_right_after_the_registration_is_served);

async fn a_request_right_after_the_registration_is_served(http: Http) {
    let behind = Behind::set(|testbed| testbed).await;
    behind.register("new");
    let waiting = behind.begin(http, "new").await;
    assert_eq!(behind.get(CLUSTER).await.status, 200, "nobody else waits");
    behind.gate.open();
    let answer = answered(waiting).await;
    assert!(is_ok(&answer), "{} {}", answer.status, answer.text());
    assert_eq!(behind.get("new").await.status, 200);
    assert_eq!(behind.hub.calls(ASKED), 1, "once it is known nobody asks");
}

#[tokio::test]
async fn all_who_wait_for_a_name_share_one_question_on_every_core() {
    let behind = Behind::set(|testbed| testbed.threads(2)).await;
    let answering = Gate::new();
    behind.hub.fail(ASKED, Fault::Until(answering.clone()));
    behind.register("new");
    let first = behind.begin(Http::H2, "new").await;
    let crowd = join_all((0..CROWD).map(|_| behind.get("new")));
    let open = async {
        // The first, the crowd, and the reader of the metrics.
        becomes(WAIT, "the crowd", async || behind.in_flight().await >= CROWD + 2).await;
        answering.open();
        behind.gate.open();
    };
    let (answers, ()) = tokio::join!(crowd, open);
    assert!(answers.iter().all(is_ok) && is_ok(&answered(first).await));
    assert_eq!(behind.hub.calls(ASKED), 1);
}

#[tokio::test]
async fn who_asks_often_for_what_is_not_there_is_told_so_and_the_hub_asked_once_a_second() {
    let behind = Behind::set(|testbed| testbed).await;
    let start = Instant::now();
    let mut connection = behind.connect(Http::H2).await;
    for _ in 0..100 {
        gone(&connection.get(&proxied("nobody", PATH)).await);
    }
    let most = 1 + usize::try_from(start.elapsed().as_secs()).expect("fits");
    let asked = behind.hub.calls(ASKED);
    assert!((1..=most).contains(&asked), "{asked} questions in {:?}", start.elapsed());
}

#[tokio::test]
async fn who_may_not_use_a_cluster_learns_nothing_of_it_and_asks_nobody() {
    let behind = Behind::set(|testbed| testbed).await;
    behind.hub.add_token("stranger", TokenUser::new("stranger", &[]));
    behind.hub.on_access(|_| Decision::no_opinion(""));
    behind.register("new");
    for name in ["new", "nobody"] {
        let mut connection = behind.testbed.anonymous(Http::H2).await.bearer("stranger");
        assert_eq!(connection.get(&proxied(name, PATH)).await.status, 403, "{name}");
    }
    assert_eq!(behind.hub.calls(ASKED), 0);
}

#[tokio::test]
async fn a_hub_that_does_not_say_makes_nobody_absent() {
    for fault in [Fault::Status(500), Fault::Status(401), Fault::Garbage, Fault::Hang] {
        let behind = Behind::set(|testbed| testbed).await;
        behind.hub.fail(ASKED, fault.clone());
        let answer = behind.get("nobody").await;
        let message = answer.status_message(503, "ServiceUnavailable");
        assert!(!message.contains("no such cluster") && message.contains("nobody"), "{fault:?}: {message}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{fault:?}");
        behind.hub.heal(ASKED);
        let mut connection = behind.connect(Http::H2).await;
        let told =
            becomes(WAIT, "the hub's word", async || connection.get(&proxied("nobody", PATH)).await.status == 404);
        told.await;
    }
}

#[tokio::test]
async fn a_gateway_that_may_not_ask_believes_its_watch() {
    let behind = Behind::set(|testbed| testbed).await;
    behind.hub.fail(ASKED, Fault::Status(403));
    gone(&behind.get("nobody").await);
}

#[tokio::test]
async fn a_watch_that_stays_behind_is_said_to_be_behind() {
    let behind = Behind::set(|testbed| testbed).await;
    behind.register("new");
    let (start, answer) = (Instant::now(), behind.get("new").await);
    assert!(start.elapsed() >= CATCH_UP, "{:?}", start.elapsed());
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(message.contains("new") && message.contains("not read it from the hub yet"), "{message}");
    assert_eq!(answer.header("retry-after"), Some("1"));
    let metrics = behind.metrics().await;
    for line in ["{result=\"found\"} 1", "{result=\"late\"} 1"] {
        assert!(metrics.contains(&format!("cluster_gateway_second_looks_total{line}")), "{metrics}");
    }
}

#[tokio::test]
async fn nobody_waits_for_a_cluster_that_went_again() {
    let behind = Behind::set(|testbed| testbed).await;
    behind.register("new");
    let waiting = behind.begin(Http::H2, "new").await;
    assert!(behind.hub.delete_secret(NAMESPACE, "new"));
    behind.gate.open();
    let (start, answer) = (Instant::now(), answered(waiting).await);
    assert!(start.elapsed() < CATCH_UP, "{:?}", start.elapsed());
    // The cluster was there for a moment.
    if !is_ok(&answer) {
        gone(&answer);
    }
    becomes(WAIT, "the cluster's end", async || behind.get("new").await.status == 404).await;
}

#[tokio::test]
async fn only_a_secret_that_is_a_cluster_is_waited_for_and_a_wrong_one_says_why() {
    let behind = Behind::set(|testbed| testbed).await;
    let unlabelled = ClusterSecret::new(NAMESPACE, "unlabelled").endpoint(&behind.member.url()).data("token", "t");
    behind.hub.put_secret(unlabelled);
    gone(&behind.get("unlabelled").await);

    behind.hub.put_secret(cluster("wrong", &behind.member).data("endpoint", "nowhere"));
    let waiting = behind.begin(Http::H2, "wrong").await;
    behind.gate.open();
    let message = answered(waiting).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("wrong") && message.contains("endpoint"), "{message}");
}

#[tokio::test]
async fn what_is_written_last_counts() {
    let behind = Behind::set(|testbed| testbed).await;
    behind.register("new");
    let waiting = behind.begin(Http::H2, "new").await;
    behind.hub.put_secret(cluster("new", &behind.member).token("second"));
    behind.gate.open();
    assert!(is_ok(&answered(waiting).await));
    let latest = || behind.member.requests().pop().expect("a request was made");
    becomes(WAIT, "the second token", async || {
        assert!(is_ok(&behind.get("new").await));
        latest().header("authorization") == Some("Bearer second")
    })
    .await;
}

#[tokio::test]
async fn a_cluster_of_open_cluster_management_is_where_its_managed_cluster_says() {
    let behind = Behind::set(|testbed| testbed.arg("--ocm-integration")).await;
    let config = json!({"url": behind.member.url(), "caBundle": STANDARD.encode(behind.member.ca_pem())});
    let spec = json!({"hubAcceptsClient": true, "managedClusterClientConfigs": [config]});
    behind.hub.put(MANAGED, json!({"metadata": {"name": "new"}, "spec": spec}));
    behind.hub.put_secret(ClusterSecret::new(NAMESPACE, "new").token("t").data("ca.crt", ""));
    let waiting = behind.begin(Http::H2, "new").await;
    behind.gate.open();
    // Two watches: the one of ManagedClusters may be the later one, and then the Secret alone has
    // no endpoint.
    let answer = answered(waiting).await;
    assert!(is_ok(&answer) || answer.status_message(503, "ServiceUnavailable").contains("api-endpoint"));
    becomes(WAIT, "the managed address", async || is_ok(&behind.get("new").await)).await;
}
