//! Decides when to look at a cluster, and what to write.
//!
//! kube's queue holds the clusters. Each comes up when its Secret or one of its profiles changes,
//! and when its probe is due. A member that does not answer keeps its slot in the queue until the
//! timeout. So members that did not answer last time need a permit too, and there are fewer permits
//! than slots: others do not wait for them.

mod observed;
mod publication;

use std::sync::Arc;
use std::time::Duration;

use fleet::Fleet;
use futures_util::StreamExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::{Api, Client, ResourceExt as _};
use net::backoff::Backoff;
use register::outcome::Outcome;
use register::profile::{GatewayAddress, Registered};
use tokio::sync::Semaphore;

use self::observed::{Clusters, Due};
use self::publication::Unwritten;
use super::Context;
use super::books::Books;
use super::writer::Writer;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::parts::hub_calls::LeaderClient;
use crate::parts::probe;
use crate::queue::Queue;
use crate::raw::RawObject;
use crate::secrets::Meta;
use crate::wakes::Wakes;

/// Clusters in work at a time.
const AT_ONCE: u16 = 64;
/// Permits for those that did not answer last time, or never did.
const DOUBTFUL: usize = 32;
/// Wait before the next try to get such a permit.
const NO_ROOM: Backoff = Backoff::steady(Duration::from_secs(10), 0.5);
/// Share by which probes are spread, so that those of a fleet that was registered at once do not
/// stay together.
const SPREAD: f64 = 0.2;
/// Concurrent removals.
const REMOVALS: usize = 16;

pub struct Publisher {
    gateway: GatewayAddress,
    hub: Client,
    members: Fleet,
    events: Events,
    metrics: Metrics,
    /// Namespace of the clusters' Secrets.
    place: String,
    namespaces: Vec<String>,
    clusters: Clusters,
    books: Books,
    writer: Writer,
    wakes: Wakes,
    /// Our profiles that may have no cluster.
    orphans: Wakes,
    doubtful: Semaphore,
}

// === impl Publisher ===

impl Publisher {
    pub fn new(context: &Context<'_>, gateway: GatewayAddress, resource: ApiResource) -> Self {
        let config = context.config;
        Self {
            gateway,
            hub: context.hub.clone(),
            members: context.members.clone(),
            events: context.events.clone(),
            metrics: context.metrics.clone(),
            place: config.secret_namespace.clone(),
            namespaces: config.clusterprofile_namespaces.clone(),
            clusters: Clusters::default(),
            books: Books::new(&config.secret_namespace, &config.clusterprofile_namespaces),
            writer: Writer::new(LeaderClient::of(context), resource),
            wakes: Wakes::default(),
            orphans: Wakes::default(),
            doubtful: Semaphore::new(DOUBTFUL),
        }
    }

    /// The Secrets of registered clusters.
    pub fn secrets(&self) -> Api<Meta> {
        Api::namespaced(self.hub.clone(), &self.place)
    }

    /// The profiles of each namespace that is published into.
    pub fn profiles(&self) -> impl Iterator<Item = (&String, Api<RawObject>)> {
        self.namespaces.iter().map(|name| (name, self.writer.watched(name)))
    }

    /// Removes profiles of clusters that are gone. Never ends.
    pub async fn sweep(self: Arc<Self>) {
        let removals = self.orphans.clone().stream().for_each_concurrent(REMOVALS, |(namespace, name)| {
            let publisher = Arc::clone(&self);
            async move { publisher.remove(namespace, name).await }
        });
        removals.await;
    }

    /// Works on the clusters of the Secrets in `store`. Never ends.
    pub async fn work(self: Arc<Self>, store: Store<Meta>) {
        let queue = Queue { wakes: self.wakes.clone(), store, resource: (), at_once: AT_ONCE };
        let look = async |secret: Arc<Meta>, publisher: Arc<Self>| publisher.look(&secret).await;
        let retry = |secret: Arc<Meta>, failure: &Unwritten, publisher: Arc<Self>| publisher.retry(&secret, failure);
        queue.run(self, look, retry).await;
    }

    /// Takes a list of the clusters' Secrets.
    pub fn registered(&self, secrets: Vec<Meta>) {
        self.clusters.listed(&secrets);
        for secret in secrets {
            self.wakes.push(&self.place, &secret.name_any());
        }
        self.wake_orphans();
    }

    /// Takes a new or changed Secret.
    pub fn changed(&self, secret: &Meta) {
        self.clusters.see(secret);
        self.wakes.push(&self.place, &secret.name_any());
    }

    pub fn unregistered(&self, name: &str) {
        self.clusters.forget(name);
        for namespace in &self.namespaces {
            self.orphans.push(namespace, name);
        }
    }

    /// Takes the list of a namespace's profiles.
    pub fn listed(&self, namespace: &str, profiles: Vec<DynamicObject>) {
        self.books.listed(namespace, profiles);
        for name in self.clusters.names() {
            self.wakes.push(&self.place, &name);
        }
        self.wake_orphans();
    }

    /// Takes a new or changed profile.
    pub fn seen(&self, namespace: &str, profile: DynamicObject) {
        let name = profile.name_any();
        self.books.see(namespace, profile);
        self.wake(namespace, &name);
    }

    pub fn gone(&self, namespace: &str, profile: &DynamicObject) {
        let name = profile.name_any();
        self.books.forget(namespace, &name, &profile.uid().unwrap_or_default());
        self.wake(namespace, &name);
    }

    fn wake(&self, namespace: &str, name: &str) {
        if self.clusters.has(name) {
            self.wakes.push(&self.place, name);
        } else {
            self.orphans.push(namespace, name);
        }
    }

    fn wake_orphans(&self) {
        for (namespace, name) in self.books.ours() {
            if !self.clusters.has(&name) {
                self.orphans.push(&namespace, &name);
            }
        }
    }

    /// Publishes what is known of a cluster, probes it if that is due, and publishes the outcome.
    async fn look(&self, secret: &Meta) -> Result<Action, Unwritten> {
        let (labels, annotations) = (secret.labels(), secret.annotations());
        let Some(cluster) = Registered::read(&secret.name_any(), labels, annotations) else {
            return Ok(Action::await_change());
        };
        // A missing namespace must not keep the other profiles from being written, or the member
        // from being probed.
        let published = self.publish(&cluster, secret).await;
        let name = cluster.name.as_str();
        let (was_well, seen) = (*published.as_ref().unwrap_or(&false), self.clusters.seen(name));
        let wait = match self.clusters.due(name, was_well) {
            Due::In(wait) => wait,
            Due::Now { is_doubtful: false } => self.probe(&cluster).await,
            // Without a permit it comes up again soon, because the queue must not fill with
            // waiters.
            Due::Now { is_doubtful: true } => match self.doubtful.try_acquire() {
                Ok(_place) => self.probe(&cluster).await,
                Err(_) => NO_ROOM.wait(0),
            },
        };
        let is_news = self.clusters.seen(name) != seen;
        if is_news {
            self.publish(&cluster, secret).await?
        } else {
            published?
        };
        self.clusters.written(name);
        Ok(Action::requeue(wait))
    }

    /// Returns the wait until the next probe.
    async fn probe(&self, cluster: &Registered) -> Duration {
        let (name, member) = (cluster.name.as_str(), self.members.client(&cluster.name));
        let outcome = probe::health(&self.members, &cluster.name).await;
        let is_well = outcome == Outcome::Healthy;
        self.metrics.profiles.probed(&outcome);
        if is_well && self.clusters.wants_details(name) {
            let (version, properties) = (probe::version(&member).await, probe::properties(&member).await);
            self.clusters.detailed(name, version, properties);
        }
        let spread = Backoff { chance: SPREAD, ..NO_ROOM };
        self.clusters.probed(name, outcome, |window| spread.some_of(window))
    }

    fn retry(&self, secret: &Meta, failure: &Unwritten) -> Action {
        let after = Backoff::OBJECT.wait(self.clusters.failed(&secret.name_any()));
        tracing::warn!(?after, "{failure}");
        self.metrics.failed(crate::args::PartName::Clusterprofile.as_str());
        Action::requeue(after)
    }
}
