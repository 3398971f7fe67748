//! The metrics of the Go cluster-gateway: its names, labels and buckets, for the dashboards and alerts there are.
//!
//! In three points the values are righter than there: failures of the gateway itself count under the code that the client got,
//! upgrades under 101, and clients that leave before the answer under 499. Resources are the caller's words: they become labels
//! in a bounded number.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::resource::{self, OTHER};

/// Seconds.
const BUCKETS: [f64; 12] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
/// Resources with a label of their own; a cluster with many custom resources has about two hundred.
const MOST_RESOURCES: usize = 300;
/// Pairs of verb and code that a resource of a cluster has series for; codes beyond are counted as their class, 404 as 400. Honest
/// members never come near.
const MOST_OUTCOMES: usize = 40;

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
    /// By success.
    escalation: [Histogram; 2],
    /// Every label given out: they are never taken back, since counters of resources outlive clusters.
    resources: Arc<Mutex<HashSet<Arc<str>>>>,
}

/// The share of one cluster.
#[derive(Debug)]
pub struct OfCluster {
    cluster: Arc<str>,
    families: Proxied,
    resources: Mutex<HashMap<Arc<str>, Arc<Resource>>>,
}

/// One resource of one cluster.
#[derive(Debug)]
pub struct Resource {
    label: Arc<str>,
    cluster: Arc<str>,
    families: Proxied,
    outcomes: Mutex<Vec<Outcome>>,
}

#[derive(Debug)]
struct Outcome {
    verb: &'static str,
    code: u16,
    by_resource: Counter,
    by_cluster: Counter,
    duration: Histogram,
}

// === impl Proxied ===

impl Proxied {
    pub fn register(registry: &mut Registry) -> Self {
        let escalation = Family::<SuccessLabels, Histogram>::new_with_constructor(|| Histogram::new(BUCKETS));
        let proxied = Self {
            by_resource: Family::default(),
            by_cluster: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            escalation: ["false", "true"].map(|success| escalation.get_or_create_owned(&SuccessLabels { success })),
            resources: Arc::default(),
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
            "Time of the access review of what is asked of the member",
            escalation,
        );
        proxied
    }

    pub fn of_cluster(&self, cluster: &Arc<str>) -> OfCluster {
        OfCluster { cluster: Arc::clone(cluster), families: self.clone(), resources: Mutex::default() }
    }

    /// A second review, of the proxied request's own attributes, has taken this long; `success` if the hub answered it.
    pub fn escalation_reviewed(&self, success: bool, took: Duration) {
        self.escalation[usize::from(success)].observe(took.as_secs_f64());
    }

    /// `name` as a label, or the label of all that come too late.
    fn label(&self, name: &str) -> Arc<str> {
        let mut known = self.resources.lock();
        let full = known.len() >= MOST_RESOURCES;
        if let Some(label) = known.get(name).or_else(|| full.then(|| known.get(OTHER)).flatten()) {
            return Arc::clone(label);
        }
        let label: Arc<str> = if full { OTHER } else { name }.into();
        known.insert(Arc::clone(&label));
        label
    }
}

// === impl OfCluster ===

impl OfCluster {
    /// Where requests for `path`, a member's, are counted.
    pub fn resource(&self, path: &str) -> Arc<Resource> {
        let name = resource::label(path);
        let mut resources = self.resources.lock();
        if let Some(resource) = resources.get(name) {
            return Arc::clone(resource);
        }
        let label = self.families.label(name);
        let make = || {
            let (label, cluster) = (Arc::clone(&label), Arc::clone(&self.cluster));
            Arc::new(Resource { label, cluster, families: self.families.clone(), outcomes: Mutex::default() })
        };
        Arc::clone(resources.entry(Arc::clone(&label)).or_insert_with(make))
    }

    /// Removes the series of the cluster. Nothing may be counted any more.
    pub fn forget(&self) {
        for resource in self.resources.lock().values() {
            for Outcome { verb, code, .. } in &*resource.outcomes.lock() {
                let (resource, cluster) = (Arc::clone(&resource.label), Arc::clone(&self.cluster));
                let of_cluster = ClusterLabels { cluster: Arc::clone(&cluster), code: *code };
                self.families.by_cluster.remove(&of_cluster);
                self.families.duration.remove(&DurationLabels { resource, verb, cluster, code: *code });
            }
        }
    }
}

// === impl Resource ===

impl Resource {
    /// A request has ended.
    pub fn done(&self, verb: &'static str, code: u16, took: Duration) {
        let mut outcomes = self.outcomes.lock();
        let outcome = self.outcome(&mut outcomes, verb, code);
        outcome.by_resource.inc();
        outcome.by_cluster.inc();
        outcome.duration.observe(took.as_secs_f64());
    }

    fn outcome<'a>(&self, outcomes: &'a mut Vec<Outcome>, verb: &'static str, code: u16) -> &'a Outcome {
        let find = |outcomes: &[Outcome], code| outcomes.iter().position(|it| it.code == code && it.verb == verb);
        let class = code / 100 * 100;
        let known = find(outcomes, code);
        let full = outcomes.len() >= MOST_OUTCOMES;
        let index = known.or_else(|| full.then(|| find(outcomes, class)).flatten()).unwrap_or_else(|| {
            outcomes.push(self.series(verb, if full { class } else { code }));
            outcomes.len() - 1
        });
        &outcomes[index]
    }

    fn series(&self, verb: &'static str, code: u16) -> Outcome {
        let (resource, cluster) = (Arc::clone(&self.label), Arc::clone(&self.cluster));
        let Proxied { by_resource, by_cluster, duration, .. } = &self.families;
        Outcome {
            verb,
            code,
            by_resource: by_resource.get_or_create_owned(&ResourceLabels { resource: resource.clone(), verb, code }),
            by_cluster: by_cluster.get_or_create_owned(&ClusterLabels { cluster: cluster.clone(), code }),
            duration: duration.get_or_create_owned(&DurationLabels { resource, verb, cluster, code }),
        }
    }
}

/// The verb a request was authorized with on the hub, before anything was known of its resource; so a list is a `get`.
pub fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
