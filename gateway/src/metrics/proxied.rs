//! The metrics of the Go cluster-gateway, with its names, labels and buckets, for existing
//! dashboards and alerts.
//!
//! The values are more correct than there in three points: failures of the gateway itself count
//! under the code that the client got, upgrades under 101, and clients that leave before the
//! response under 499. Callers choose the names of resources, so only a bounded number becomes
//! labels, and only after a member has responded with success.

mod labels;
mod of_cluster;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

use self::labels::Labels;
use super::life::Life;

pub use self::of_cluster::{OfCluster, Resource};

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

/// The resource of a request.
#[derive(Debug)]
pub enum Topic {
    Known(Arc<Resource>),
    /// A name for which no request to the cluster has succeeded yet.
    New(Box<str>),
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

#[cfg(test)]
mod tests;
