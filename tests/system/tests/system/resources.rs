//! The gateway's own resources: reads, watches and health of `clustergateways`, and
//! `virtualclusters`.

mod churn;
mod failures;
mod health;
mod karmada;
mod lists;
mod ocm;
mod ocm_accepted;
mod ocm_lost;
mod standalone;
mod traffic;
mod transitions;
mod virtual_clusters;
mod watches;

use system_tests::prelude::*;
use system_tests::{Streamed, TestbedBuilder};

pub(super) const NAMESPACE: &str = "vela-system";
pub(super) const SECRETS: Resource = Resource::Secrets;
pub(super) const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";
/// The `Accept` header of kubectl.
pub(super) const TABLE: (&str, &str) = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");

/// A hub, and the gateway before its aggregator.
pub(super) struct Fixture {
    pub(super) hub: FakeHub,
    pub(super) testbed: Testbed,
}

/// A watch being read, on a connection of its own.
pub(super) struct Watch {
    events: Streamed<'static>,
    _connection: Connection,
}

/// One event, as a watcher sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) object: Value,
}

/// A Secret that is a readable cluster, though there is no member.
pub(super) fn readable(name: &str) -> ClusterSecret {
    ClusterSecret::new(NAMESPACE, name).endpoint("https://member.example:6443").token("canary-token")
}

/// A Secret that is meant as a cluster and cannot be read as one.
pub(super) fn unreadable(name: &str) -> ClusterSecret {
    ClusterSecret::new(NAMESPACE, name).endpoint("canary nowhere").token("canary-token")
}

// === impl Fixture ===

impl Fixture {
    pub(super) async fn set(secrets: impl IntoIterator<Item = ClusterSecret>) -> Self {
        Self::with(secrets, |testbed| testbed).await
    }

    pub(super) async fn with(
        secrets: impl IntoIterator<Item = ClusterSecret>,
        configure: impl FnOnce(TestbedBuilder) -> TestbedBuilder,
    ) -> Self {
        let hub = FakeHub::start().await;
        for secret in secrets {
            hub.put_secret(secret);
        }
        let testbed = configure(Testbed::builder().hub(&hub)).start().await;
        // Its own watch begins after that: a fault that a test orders for the next one is not meant
        // for it.
        hub.watching(SECRETS, 1).await;
        Self { hub, testbed }
    }

    /// A user that needs no review.
    pub(super) async fn connect(&self, http: Http) -> Connection {
        self.testbed.aggregator_as_admin(&self.hub, http).await
    }

    pub(super) async fn get(&self, target: &str) -> Answer {
        self.connect(Http::H2).await.get(target).await
    }

    /// The last request for Secrets that the hub had.
    pub(super) fn asked(&self) -> String {
        self.hub.requests().into_iter().rfind(|request| request.contains("/secrets")).expect("a request")
    }

    /// Any call with a body.
    pub(super) async fn call(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = self.connect(Http::H2).await;
        connection.call(method, target, headers, body).await
    }

    /// A watch of `target`, which has a query.
    pub(super) async fn watch(&self, target: &str) -> Watch {
        Watch::open(self.connect(Http::H2).await, target).await
    }

    /// As [`Fixture::watch`], in the form that `accept` asks for.
    pub(super) async fn watch_as(&self, accept: (&str, &str), target: &str) -> Watch {
        Watch::open(self.connect(Http::H2).await.with(accept.0, accept.1), target).await
    }
}

// === impl Watch ===

impl Watch {
    pub(super) async fn open(connection: Connection, target: &str) -> Self {
        let events = within(WAIT, target, connection.open_beside("GET", target)).await.expect("a head");
        assert_eq!(events.status, 200);
        assert_eq!(events.header("content-type"), Some("application/json"));
        assert_eq!(events.header("content-length"), None);
        Self { events, _connection: connection }
    }

    /// The next event; `None` at the proper end.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let line = within(WAIT, "an event", self.events.line()).await.expect("a whole watch")?;
        let mut event: Value = serde_json::from_str(&line).expect("JSON");
        let kind = event["type"].as_str().expect("a type").to_owned();
        Some(Event { kind, object: event["object"].take() })
    }

    /// Type and name of the next event.
    pub(super) async fn next_summary(&mut self) -> String {
        let event = self.next().await.expect("an event");
        format!("{} {}", event.kind, event.name())
    }
}

// === impl Event ===

impl Event {
    pub(super) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }
}

/// Names in a list.
pub(super) fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let list = answer.json();
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}
