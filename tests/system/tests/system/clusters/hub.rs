//! Clusters of a hub: its Secrets, followed live, and remembered while the hub is away.

use kit::wait::timely;
use system_tests::prelude::*;

use super::{EFFECTIVE, PATH, is_ok, member};

/// Namespace of the Secrets.
const NAMESPACE: &str = "vela-system";
const SECRETS: Resource = Resource::Secrets;
/// Failed calls are repeated with back-off: one second, then two, with as much jitter.
const BACK_OFF: Duration = Duration::from_secs(15);

/// A hub with one cluster, and the gateway before its aggregator.
struct Fixture {
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
}

// === impl Fixture ===

impl Fixture {
    async fn set() -> Self {
        let hub = FakeHub::start().await;
        let member = member(MemberOptions::default()).await;
        hub.put_secret(cluster(CLUSTER, &member));
        let testbed = Testbed::builder().hub(&hub).start().await;
        Self { hub, member, testbed }
    }

    fn secret(&self, name: &str) -> ClusterSecret {
        cluster(name, &self.member)
    }

    /// The hub's aggregator, for a user that needs no review.
    async fn connect(&self) -> Connection {
        self.testbed.aggregator_as_admin(&self.hub, Http::H2).await
    }

    /// Asks for [`PATH`] of a cluster until it is answered as `expected`.
    async fn until(&self, limit: Duration, name: &str, expected: impl Fn(&Answer) -> bool) -> Answer {
        self.connect().await.until(limit, &proxied(name, PATH), expected).await
    }
}

/// The life of one Secret; returns the time after which the slowest of its changes took effect.
async fn come_change_and_go(fixture: &Fixture) -> Duration {
    let mut slowest = Duration::ZERO;
    let mut effect = async |is_there: &dyn Fn(&Answer) -> bool| {
        let changed = Instant::now();
        let answer = fixture.until(EFFECTIVE, "late", is_there).await;
        slowest = slowest.max(changed.elapsed());
        answer
    };
    fixture.hub.put_secret(fixture.secret("late"));
    effect(&is_ok).await;

    fixture.hub.put_secret(fixture.secret("late").token("renewed"));
    let latest = || fixture.member.requests().pop().expect("a request was made");
    effect(&|_| latest().header("authorization") == Some("Bearer renewed")).await;

    fixture.hub.put_secret(fixture.secret("late").data("endpoint", "nowhere"));
    let answer = effect(&|answer| answer.status == 503).await;
    assert!(answer.status_message(503, "ServiceUnavailable").contains("endpoint"));

    assert!(fixture.hub.delete_secret(NAMESPACE, "late"));
    let answer = effect(&|answer| answer.status == 404).await;
    assert!(answer.status_message(404, "NotFound").contains("no such cluster"));
    slowest
}

#[tokio::test]
async fn secrets_come_change_and_go_within_a_second() {
    let fixture = Fixture::set().await;
    fixture.until(EFFECTIVE, CLUSTER, is_ok).await;
    timely(Duration::from_secs(1), "the slowest of the changes", async || come_change_and_go(&fixture).await).await;
    fixture.until(EFFECTIVE, CLUSTER, is_ok).await;
}

#[tokio::test]
async fn all_secrets_come_with_one_watch_and_no_list() {
    let fixture = Fixture::set().await;
    fixture.until(EFFECTIVE, CLUSTER, is_ok).await;
    let requests = fixture.hub.requests();
    let asked: Vec<_> = requests.iter().filter(|request| request.contains("/secrets?")).collect();
    assert!(asked.len() == 1 && asked[0].contains("sendInitialEvents=true"), "{asked:?}");
}

#[tokio::test]
async fn only_labelled_secrets_of_the_namespace_are_clusters() {
    let fixture = Fixture::set().await;
    let unlabelled = ClusterSecret::new(NAMESPACE, "unlabelled").endpoint(&fixture.member.url()).data("token", "t");
    let elsewhere = ClusterSecret::new("default", "elsewhere").endpoint(&fixture.member.url()).token("t");
    fixture.hub.put_secret(unlabelled);
    fixture.hub.put_secret(elsewhere);
    fixture.hub.put_secret(fixture.secret("last"));
    fixture.until(EFFECTIVE, "last", is_ok).await; // watched in order: the others would be there
    for name in ["unlabelled", "elsewhere"] {
        fixture.until(EFFECTIVE, name, |answer| answer.status == 404).await;
    }
}

#[tokio::test]
async fn known_clusters_go_on_working_while_the_hub_is_away() {
    let fixture = Fixture::set().await;
    fixture.until(EFFECTIVE, CLUSTER, is_ok).await;
    for call in [Call::Watch(SECRETS), Call::List(SECRETS)] {
        fixture.hub.fail(call, Fault::Status(500));
    }
    fixture.hub.close_connections();
    fixture.hub.called(Call::Watch(SECRETS), 2).await; // it noticed
    fixture.until(EFFECTIVE, CLUSTER, is_ok).await;
    fixture.until(EFFECTIVE, "unheard-of", |answer| answer.status == 404).await;

    fixture.hub.put_secret(fixture.secret("late"));
    for call in [Call::Watch(SECRETS), Call::List(SECRETS)] {
        fixture.hub.heal(call);
    }
    fixture.until(BACK_OFF, "late", is_ok).await;
}

#[tokio::test]
async fn what_happened_while_nobody_watched_is_learned_from_a_new_list() {
    let fixture = Fixture::set().await;
    fixture.until(EFFECTIVE, CLUSTER, is_ok).await;
    fixture.hub.watching(SECRETS, 1).await;
    let gate = Gate::new();
    fixture.hub.fail_next(Call::Watch(SECRETS), 1, Fault::Until(gate.clone()));
    fixture.hub.end_watches();
    fixture.hub.called(Call::Watch(SECRETS), 2).await;
    fixture.hub.put_secret(fixture.secret("late"));
    assert!(fixture.hub.delete_secret(NAMESPACE, CLUSTER));
    fixture.hub.compact(); // the watch is answered by 410: too old
    gate.open();
    fixture.until(BACK_OFF, "late", is_ok).await;
    fixture.until(EFFECTIVE, CLUSTER, |answer| answer.status == 404).await;
}
