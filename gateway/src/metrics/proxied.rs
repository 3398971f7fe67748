//! The metrics of the Go cluster-gateway, with its names, labels and buckets, for existing
//! dashboards and alerts.
//!
//! The values are more correct than there in three points: failures of the gateway itself count
//! under the code that the client got, upgrades under 101, and clients that leave before the
//! response under 499. Callers choose the names of resources, so only a bounded number becomes
//! labels, and only after a member has responded with success.

mod labels;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::quality::RandomState;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

use self::labels::{Labels, OTHER};
use super::labels::HttpMethod;
use super::ledger::Ledger;
use super::life::Life;

/// In seconds.
const BUCKETS: [f64; 12] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
/// Most resources with their own series in one cluster, including `other`. A cluster with many
/// custom resources has about two hundred.
const MOST_RESOURCES: usize = 300;
/// Most pairs of verb and code with their own series, for one resource of a cluster. Further codes
/// count as their class, for example 404 as 400. Honest members never come close.
const MOST_OUTCOMES: usize = 40;
/// Room for the classes of all verbs, in addition.
const CLASSES: usize = 80;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResourceLabels {
    resource: Arc<str>,
    verb: &'static str,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClusterLabels {
    cluster: Arc<str>,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DurationLabels {
    resource: Arc<str>,
    verb: &'static str,
    cluster: Arc<str>,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SuccessLabels {
    success: &'static str,
}

/// The families. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Proxied {
    by_resource: Family<ResourceLabels, Counter>,
    by_cluster: Family<ClusterLabels, Counter>,
    duration: Family<DurationLabels, Histogram, fn() -> Histogram>,
    /// Indexed by success.
    escalation: [Histogram; 2],
    labels: Arc<Labels>,
}

/// The series of one cluster.
#[derive(Debug)]
pub struct OfCluster {
    cluster: Arc<str>,
    families: Proxied,
    life: Arc<Life>,
    /// Replaced as a whole when one is added, so that requests find theirs without a lock.
    resources: ArcSwap<Resources>,
    adding: Mutex<()>,
}

type Resources = HashMap<Arc<str>, Arc<Resource>, RandomState>;

/// The resource of a request.
#[derive(Debug)]
pub enum Topic {
    Known(Arc<Resource>),
    /// A name for which no request to the cluster has succeeded yet.
    New(Box<str>),
}

/// One resource of one cluster.
#[derive(Debug)]
pub struct Resource {
    label: Arc<str>,
    outcomes: Ledger<(HttpMethod, u16), Outcome>,
}

#[derive(Debug)]
struct Outcome {
    by_resource: Counter,
    by_cluster: Counter,
    duration: Histogram,
}

// === impl Proxied ===

impl Proxied {
    pub fn register(registry: &mut Registry) -> Self {
        let escalation = Family::<SuccessLabels, Histogram>::new_with_constructor(|| Histogram::new(&BUCKETS));
        let proxied = Self {
            by_resource: Family::default(),
            by_cluster: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(&BUCKETS)),
            escalation: ["false", "true"].map(|success| escalation.get_or_create_owned(&SuccessLabels { success })),
            labels: Arc::default(),
        };
        registry.register(
            "ocm_proxy_proxied_resource_requests_by_resource",
            "Requests for members by resource, verb and HTTP status code",
            proxied.by_resource.clone(),
        );
        registry.register(
            "ocm_proxy_proxied_requests_by_cluster",
            "Requests for members by cluster and HTTP status code",
            proxied.by_cluster.clone(),
        );
        registry.register(
            "ocm_proxy_proxied_request_duration_seconds",
            "Time from the head of a request for a member to the end of its response, streams and upgrades included",
            proxied.duration.clone(),
        );
        registry.register(
            "ocm_proxy_cluster_escalation_access_review_duration_seconds",
            "Time of the second access review, of the request on the member",
            escalation,
        );
        proxied
    }

    pub(super) fn of_cluster(&self, cluster: &Arc<str>, life: &Arc<Life>) -> OfCluster {
        let (resources, adding) = (ArcSwap::default(), Mutex::default());
        OfCluster { cluster: Arc::clone(cluster), families: self.clone(), life: Arc::clone(life), resources, adding }
    }

    /// Counts the duration of a second review, of the proxied request's own attributes; `success`
    /// if the hub answered it.
    pub fn escalation_reviewed(&self, success: bool, took: Duration) {
        self.escalation[usize::from(success)].observe(took);
    }
}

// === impl OfCluster ===

impl OfCluster {
    /// The topic of requests for `resource`, which may be any text.
    pub fn topic(&self, resource: &str) -> Topic {
        let name = labels::label(resource);
        let known = self.resources.load();
        known.get(name).map_or_else(|| Topic::New(name.into()), |resource| Topic::Known(Arc::clone(resource)))
    }

    /// Counts a request that has ended.
    pub fn done(&self, topic: &Topic, verb: HttpMethod, code: u16, took: Duration) {
        let added;
        let resource = match topic {
            Topic::Known(resource) => resource,
            Topic::New(name) => {
                added = self.resource(name, code);
                &added
            }
        };
        if let Some(outcome) = self.outcome(resource, verb, code) {
            outcome.by_resource.inc();
            outcome.by_cluster.inc();
            outcome.duration.observe(took);
        }
    }

    /// Removes the cluster's series. The caller has ended its life.
    pub(super) fn remove(&self) {
        for resource in self.resources.load().values() {
            for (verb, code) in resource.outcomes.keys() {
                let (resource, cluster) = (Arc::clone(&resource.label), Arc::clone(&self.cluster));
                let verb = verb.authorized();
                self.families.by_cluster.remove(&ClusterLabels { cluster: Arc::clone(&cluster), code });
                self.families.duration.remove(&DurationLabels { resource, verb, cluster, code });
            }
        }
    }

    /// The resource under which a request for `name` that ended with `code` counts: its own label,
    /// if a member has responded to such a request with success.
    fn resource(&self, name: &str, code: u16) -> Arc<Resource> {
        let _adding = self.adding.lock();
        let known = self.resources.load();
        let full = known.len() >= MOST_RESOURCES - usize::from(!known.contains_key(OTHER));
        let label = if full { None } else { self.families.labels.of(name, code < 400) };
        let label = label.unwrap_or_else(|| OTHER.into());
        if let Some(resource) = known.get(&label) {
            return Arc::clone(resource);
        }
        let resource = Arc::new(Resource { label: Arc::clone(&label), outcomes: Ledger::default() });
        let mut more = Resources::clone(&known);
        more.insert(label, Arc::clone(&resource));
        self.resources.store(Arc::new(more));
        resource
    }

    fn outcome<'a>(&self, resource: &'a Resource, verb: HttpMethod, code: u16) -> Option<&'a Outcome> {
        let outcomes = &resource.outcomes;
        if let Some(known) = outcomes.get((verb, code)) {
            return Some(known);
        }
        let held = self.life.hold();
        let make = |code| held.series(|| self.series(&resource.label, verb, code), Outcome::unread);
        let class = code / 100 * 100;
        let known = outcomes.get_or_add(MOST_OUTCOMES, (verb, code), || make(code));
        known.or_else(|| outcomes.get_or_add(MOST_OUTCOMES + CLASSES, (verb, class), || make(class)))
    }

    fn series(&self, resource: &Arc<str>, verb: HttpMethod, code: u16) -> Outcome {
        let (resource, cluster, verb) = (Arc::clone(resource), Arc::clone(&self.cluster), verb.authorized());
        let Proxied { by_resource, by_cluster, duration, .. } = &self.families;
        Outcome {
            by_resource: by_resource.get_or_create_owned(&ResourceLabels { resource: resource.clone(), verb, code }),
            by_cluster: by_cluster.get_or_create_owned(&ClusterLabels { cluster: cluster.clone(), code }),
            duration: duration.get_or_create_owned(&DurationLabels { resource, verb, cluster, code }),
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// For a cluster that is gone.
    fn unread() -> Self {
        let (by_resource, by_cluster) = (Counter::default(), Counter::default());
        Self { by_resource, by_cluster, duration: Histogram::new(&BUCKETS) }
    }
}

#[cfg(test)]
mod tests;
