//! The hub as callers' reads of our resources use it: raw JSON, with the gateway's own permissions.
//!
//! Requests run on the caller's runtime and end when the caller disconnects. Responses are bounded
//! in size and time. Requests are bounded in number: a burst of readers queues here and not at the
//! hub.

mod exchange;

use std::sync::Arc;
use std::time::Duration;

use api::access::Verb;
use bytes::Bytes;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tokio::sync::Semaphore;

use self::exchange::{permit, request, send, with_json};
use super::bounded::LARGEST;
use super::failure::{Collection, HubFailure};
use super::lines::Lines;
use super::watches::{WatchPermit, Watches};

pub(super) use self::exchange::{Deadline, head, read, refusal};

/// Time limit for a complete response. The hub itself gives up after 60 s.
const WITHIN: Duration = Duration::from_mins(1);
/// Most calls in flight. Further ones wait for as long as a call may last.
const CALLS: usize = 32;
/// Most lists among them, because lists take memory.
const LISTS: usize = 8;

/// The hub. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    calls: Client,
    watches: Client,
    namespace: Arc<str>,
    /// Path of the collection of Secrets.
    secrets: Arc<str>,
    permits: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    watching: Watches,
    meter: Option<Arc<dyn Meter>>,
    on_refused: Option<Arc<OnRefused>>,
}

/// Called for each request that was not sent because too many are in flight.
type OnRefused = dyn Fn(&HubFailure) + Send + Sync;

/// Counts what a caller's request holds.
pub trait Meter: Send + Sync {
    /// Called for every piece of a response, long before the response is complete.
    fn received(&self, bytes: usize);

    /// A page of a list was read, and is gone.
    fn passed(&self, bytes: usize);

    /// Of what pages had, so many bytes stay in memory.
    fn kept(&self, bytes: usize);
}

/// An open watch.
pub struct Watching {
    pub lines: Lines,
    _permit: WatchPermit,
}

// === impl Hub ===

impl Hub {
    /// `watches` is the client for watches, which may be silent for long.
    pub fn new(calls: Client, watches: Client, namespace: &str) -> Self {
        Self {
            calls,
            watches,
            namespace: namespace.into(),
            secrets: format!("/api/v1/namespaces/{namespace}/secrets").into(),
            permits: Arc::new(Semaphore::new(CALLS)),
            lists: Arc::new(Semaphore::new(LISTS)),
            watching: Watches::default(),
            meter: None,
            on_refused: None,
        }
    }

    /// The namespace of the clusters' Secrets.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The same hub with the same limits, which reports its responses to `meter`.
    #[must_use]
    pub fn metered(&self, meter: Arc<dyn Meter>) -> Self {
        Self { meter: Some(meter), ..self.clone() }
    }

    /// Counts bytes that stay of pages that [`Self::list_all`] has read.
    pub fn kept(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.kept(bytes);
        }
    }

    pub(super) fn passed(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.passed(bytes);
        }
    }

    /// Calls `on_refused` for each request that was not sent because too many are in flight.
    #[must_use]
    pub fn telling(self, on_refused: impl Fn(&HubFailure) + Send + Sync + 'static) -> Self {
        Self { on_refused: Some(Arc::new(on_refused)), ..self }
    }

    pub async fn get(&self, collection: Collection, name: &str, query: &str) -> Result<Bytes, HubFailure> {
        let target = self.target(collection, Some(name), query);
        self.call(Verb::Get, collection, request(Method::GET, &target, Body::empty())).await
    }

    /// `query` has no leading `?`.
    pub async fn list(&self, collection: Collection, query: &str) -> Result<Bytes, HubFailure> {
        let target = self.target(collection, None, query);
        self.call(Verb::List, collection, request(Method::GET, &target, Body::empty())).await
    }

    /// Replaces a Secret by `body`: JSON with the resourceVersion that it replaces.
    pub async fn update_secret(&self, name: &str, query: &str, body: Vec<u8>) -> Result<Bytes, HubFailure> {
        let target = self.target(Collection::Secrets, Some(name), query);
        self.call(Verb::Update, Collection::Secrets, with_json(Method::PUT, &target, body)).await
    }

    /// Creates a Secret from `body`, which is JSON.
    pub async fn create_secret(&self, query: &str, body: Vec<u8>) -> Result<Bytes, HubFailure> {
        let target = self.target(Collection::Secrets, None, query);
        self.call(Verb::Create, Collection::Secrets, with_json(Method::POST, &target, body)).await
    }

    /// Deletes a Secret. `options` is a `DeleteOptions` in JSON.
    pub async fn delete_secret(&self, name: &str, query: &str, options: Vec<u8>) -> Result<Bytes, HubFailure> {
        let target = self.target(Collection::Secrets, Some(name), query);
        self.call(Verb::Delete, Collection::Secrets, with_json(Method::DELETE, &target, options)).await
    }

    /// A Secret of another namespace. Both names must be valid path segments.
    pub async fn secret_in(&self, namespace: &str, name: &str) -> Result<Bytes, HubFailure> {
        let target = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        self.call(Verb::Get, Collection::Secrets, request(Method::GET, &target, Body::empty())).await
    }

    /// Watches for `reader`, the key that its watches count under. `None` is the gateway itself.
    pub async fn watch(
        &self,
        reader: Option<&str>,
        collection: Collection,
        query: &str,
    ) -> Result<Watching, HubFailure> {
        let failed = |cause| HubFailure { verb: Verb::Watch, collection, cause };
        let permit = self.watching.enter(reader).map_err(|full| self.noted(failed(full.into())))?;
        let request = request(Method::GET, &self.target(collection, None, query), Body::empty());
        let deadline = Deadline::after(WITHIN);
        let response = send(&self.watches, request, deadline).await.map_err(failed)?;
        Ok(Watching { lines: Lines::new(response.into_body()), _permit: permit })
    }

    fn target(&self, collection: Collection, name: Option<&str>, query: &str) -> String {
        let path = match collection {
            Collection::Secrets => &*self.secrets,
            Collection::ManagedClusters => "/apis/cluster.open-cluster-management.io/v1/managedclusters",
            Collection::ApiGroups => "/apis",
        };
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        if query.is_empty() { format!("{path}{name}") } else { format!("{path}{name}?{query}") }
    }

    async fn call(&self, verb: Verb, collection: Collection, request: Request<Body>) -> Result<Bytes, HubFailure> {
        let deadline = Deadline::after(WITHIN);
        let call = async {
            let _list = if verb == Verb::List { Some(permit(&self.lists, deadline).await?) } else { None };
            let _permit = permit(&self.permits, deadline).await?;
            let response = send(&self.calls, request, deadline).await?;
            read(response, LARGEST, deadline, self.meter.as_deref()).await
        };
        call.await.map_err(|cause| self.noted(HubFailure { verb, collection, cause }))
    }

    fn noted(&self, failure: HubFailure) -> HubFailure {
        if let Some(on_refused) = self.on_refused.as_ref().filter(|_| failure.is_own_limit()) {
            on_refused(&failure);
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use kube::Config;
    use tokio::time::Instant;

    use super::*;
    use crate::failure::Cause;

    /// A hub that is never contacted.
    fn hub() -> Hub {
        let config = Config::new("https://127.0.0.1:1".parse().expect("a URL"));
        let client = Client::try_from(config).expect("a client");
        Hub::new(client.clone(), client, "vela-system")
    }

    #[tokio::test]
    async fn watches_beyond_the_limit_are_refused_at_once() {
        let refused = Arc::new(Semaphore::new(0));
        let counted = Arc::clone(&refused);
        let hub = Hub { watching: Watches::of(0), ..hub() }.telling(move |_| counted.add_permits(1));
        let failure = hub.watch(None, Collection::Secrets, "watch=true").await.err().expect("no permit");
        assert!(matches!(failure.cause, Cause::Busy), "{failure}");
        assert_eq!(refused.available_permits(), 1, "it is told");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_the_limit_wait_as_long_as_a_call_may_last() {
        let started = Instant::now();
        let hub = Hub { lists: Arc::new(Semaphore::new(0)), ..hub() };
        let failure = hub.list(Collection::Secrets, "").await.expect_err("no permit");
        assert!(matches!(failure.cause, Cause::Busy), "{failure}");
        assert_eq!(started.elapsed(), WITHIN);
    }

    #[tokio::test]
    async fn an_answer_has_a_limit() {
        let answer = |length| Response::new(Body::from(vec![b'x'; length]));
        let deadline = Deadline::after(WITHIN);
        assert_eq!(read(answer(10), 10, deadline, None).await.expect("taken").len(), 10);
        let cause = read(answer(11), 10, deadline, None).await.expect_err("one too many");
        assert_eq!(cause.to_string(), "the answer is too large: more than 10 bytes");
    }
}
