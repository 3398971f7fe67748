//! Tests of questions to the hub: which, how many, and what requests make of the answers, in paused
//! time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::quality::RandomState;
use futures_util::future::join_all;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};

use super::question::{AT_A_TIME, KEPT, PER_SECOND, WITHIN};
use super::*;
use crate::clusters::Entry;
use crate::metrics::Metrics;

/// The hub's answer, after some time.
#[derive(Clone)]
struct Says {
    code: StatusCode,
    body: Value,
    after: Duration,
}

/// A scripted hub, and the number of its questions.
struct Asked {
    says: Arc<Mutex<Says>>,
    times: Arc<AtomicUsize>,
    clusters: Arc<Clusters>,
    look: Arc<SecondLook>,
}

fn says(code: u16, body: Value) -> Says {
    Says { code: StatusCode::from_u16(code).expect("a code"), body, after: Duration::ZERO }
}

fn absent() -> Says {
    says(404, json!({"kind": "Status", "code": 404, "message": "not found"}))
}

fn found(version: &str) -> Says {
    let labels = json!({"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"});
    says(200, json!({"metadata": {"name": "c", "resourceVersion": version, "labels": labels}}))
}

fn name(text: &str) -> ClusterName {
    ClusterName::parse(text).expect("a name")
}

/// A snapshot of `version` with these names. None is usable, but that is enough to be registered.
fn snapshot(version: u64, names: &[&str]) -> Snapshot {
    let metrics = Metrics::register(&mut Registry::default()).of_none();
    let invalid = || Entry::Invalid { reason: "there".into(), metrics: Arc::clone(&metrics) };
    let entry = |text: &&str| (name(text), invalid());
    let clusters: HashMap<_, _, RandomState> = names.iter().map(entry).collect();
    let resource_version = version.to_string();
    Snapshot { clusters, resource_version, listed: true, complete: true, ..Snapshot::default() }
}

/// The outcome in a word: `there`, `absent`, …
fn word(outcome: Result<Arc<Cluster>, LookupError>) -> String {
    match outcome {
        Ok(cluster) => cluster.name().to_string(),
        Err(LookupError::Invalid(reason)) => reason.to_string(),
        Err(other) => format!("{other:?}").to_lowercase(),
    }
}

// === impl Asked ===

impl Asked {
    fn new(first: Says) -> Self {
        let (says, times) = (Arc::new(Mutex::new(first)), Arc::new(AtomicUsize::new(0)));
        let (script, count) = (Arc::clone(&says), Arc::clone(&times));
        let service = tower::service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::SeqCst);
            let Says { code, body, after } = script.lock().clone();
            async move {
                sleep(after).await;
                let mut response = Response::new(Full::<bytes::Bytes>::from(body.to_string()));
                *response.status_mut() = code;
                Ok::<_, kube::Error>(response)
            }
        });
        let client = Client::new(service, "default");
        let hub = Hub::new(client.clone(), client, "vela-system");
        let clusters = Arc::new(Clusters::default());
        clusters.publish(snapshot(10, &[]));
        let metrics = SecondLooks::register(&mut Registry::default());
        let look = Arc::new(SecondLook::new(hub, Arc::clone(&clusters), &Handle::current(), metrics));
        Self { says, times, clusters, look }
    }

    fn say(&self, says: Says) {
        *self.says.lock() = says;
    }

    /// The number of questions to the hub.
    fn count(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }

    async fn ask(&self, text: &str) -> String {
        word(self.look.cluster(&name(text)).await)
    }

    /// Starts a request in its own task.
    fn begin(&self, text: &str) -> tokio::task::JoinHandle<String> {
        let (look, name) = (Arc::clone(&self.look), name(text));
        tokio::spawn(async move { word(look.cluster(&name).await) })
    }

    async fn until_asked(&self, times: usize) {
        while self.count() < times {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_asked_about_once_a_second() {
    let asked = Asked::new(absent());
    for round in 1..=3 {
        for outcome in join_all((0..50).map(|_| asked.ask("c"))).await {
            assert_eq!(outcome, "absent");
        }
        assert_eq!(asked.ask("c").await, "absent");
        assert_eq!(asked.count(), round);
        advance(KEPT).await;
    }
    asked.ask("d").await;
    assert_eq!(asked.count(), 4, "another name is another question");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_served_when_the_watch_has_caught_up() {
    let asked = Asked::new(found("20"));
    let waiting: Vec<_> = (0..20).map(|_| asked.begin("c")).collect();
    asked.until_asked(1).await;
    sleep(CATCH_UP / 2).await;
    asked.clusters.publish(snapshot(19, &["another"]));
    sleep(CATCH_UP / 4).await;
    assert!(waiting.iter().all(|one| !one.is_finished()), "not before it is there");
    asked.clusters.publish(snapshot(20, &["another", "c"]));
    for one in waiting {
        assert_eq!(one.await.expect("no panic"), "there");
    }
    assert_eq!(asked.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_deleted_meanwhile_is_absent_as_soon_as_that_is_known() {
    let asked = Asked::new(found("20"));
    let waiting = asked.begin("c");
    asked.until_asked(1).await;
    let start = Instant::now();
    // The cluster came and went within one step, so even a reader of every snapshot might have
    // missed it.
    asked.clusters.publish(snapshot(21, &[]));
    assert_eq!(waiting.await.expect("no panic"), "absent");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_catch_up_is_said_to_be_late() {
    // A version that is no number cannot be passed by a snapshot.
    for version in ["20", "opaque"] {
        let asked = Asked::new(found(version));
        asked.clusters.publish(snapshot(19, &[]));
        let start = Instant::now();
        assert_eq!(asked.ask("c").await, "late", "{version}");
        assert_eq!(start.elapsed(), CATCH_UP);
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_answer_makes_a_name_absent() {
    let status = |code: u16| says(code, json!({"kind": "Status", "code": code, "message": "no"}));
    let other = says(200, json!({"metadata": {"name": "c", "resourceVersion": "20"}}));
    for (answer, outcome) in [
        (absent(), "absent"),
        (other, "absent"),
        // A gateway without the permission only has the watch, as before these questions existed.
        (status(403), "absent"),
        (status(401), "unanswered"),
        (status(429), "unanswered"),
        (status(500), "unanswered"),
        (says(200, json!("no Secret")), "unanswered"),
        (Says { after: 2 * WITHIN, ..absent() }, "unanswered"),
    ] {
        let asked = Asked::new(answer.clone());
        let start = Instant::now();
        assert_eq!(asked.ask("c").await, outcome, "{} {}", answer.code, answer.body);
        assert!(start.elapsed() <= WITHIN);
        // It may have come while the hub did not answer.
        asked.clusters.publish(snapshot(30, &["c"]));
        assert_eq!(asked.ask("c").await, "there");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_comes_back_is_believed_within_a_second() {
    let asked = Asked::new(says(503, json!({})));
    assert_eq!(asked.ask("c").await, "unanswered");
    asked.say(absent());
    advance(KEPT).await;
    assert_eq!(asked.ask("c").await, "absent");
}

#[tokio::test(start_paused = true)]
async fn no_more_is_asked_in_a_second_than_that() {
    let asked = Asked::new(absent());
    let most = usize::try_from(PER_SECOND).expect("fits");
    for number in 0..3 * most {
        assert_eq!(asked.ask(&format!("c{number}")).await, "absent");
    }
    assert_eq!(asked.count(), most);
    advance(Duration::from_secs(1)).await;
    asked.say(found("5"));
    assert_eq!(asked.ask("late").await, "absent", "passed already");
    assert_eq!(asked.count(), most + 1);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_silent_holds_few_questions_and_turns_the_rest_away_at_once() {
    let asked = Asked::new(Says { after: 10 * WITHIN, ..absent() });
    let waiting: Vec<_> = (0..NAMES.pending).map(|number| asked.begin(&format!("c{number}"))).collect();
    asked.until_asked(AT_A_TIME).await;
    let start = Instant::now();
    assert_eq!(asked.ask("one-too-many").await, "absent");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(asked.count(), AT_A_TIME);
    let most = usize::try_from(PER_SECOND).expect("fits");
    for (number, one) in waiting.into_iter().enumerate() {
        let expected = if number < most { "unanswered" } else { "absent" };
        assert_eq!(one.await.expect("no panic"), expected, "{number}");
    }
    assert_eq!(start.elapsed(), WITHIN);
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_takes_nobodys_answer_along() {
    let asked = Asked::new(Says { after: WITHIN / 2, ..found("20") });
    let (first, second) = (asked.begin("c"), asked.begin("c"));
    asked.until_asked(1).await;
    first.abort();
    sleep(WITHIN / 2).await;
    asked.clusters.publish(snapshot(20, &["c"]));
    assert_eq!(second.await.expect("no panic"), "there");
    assert_eq!(asked.count(), 1);
}
