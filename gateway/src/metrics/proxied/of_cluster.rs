//! The series of one cluster's resources.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::quality::RandomState;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use telemetry::histogram::Histogram;

use super::labels::OTHER;
use super::{
    BUCKETS, CLASSES, ClusterLabels, DurationLabels, MOST_OUTCOMES, MOST_RESOURCES, Proxied, ResourceLabels, Topic,
    labels,
};
use crate::metrics::labels::HttpMethod;
use crate::metrics::ledger::Ledger;
use crate::metrics::life::Life;

/// The series of one cluster.
#[derive(Debug)]
pub struct OfCluster {
    pub(super) cluster: Arc<str>,
    pub(super) families: Proxied,
    pub(super) life: Arc<Life>,
    /// Replaced as a whole when one is added, so that requests find theirs without a lock.
    pub(super) resources: ArcSwap<Resources>,
    pub(super) adding: Mutex<()>,
}

type Resources = HashMap<Arc<str>, Arc<Resource>, RandomState>;

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
    pub(in crate::metrics) fn remove(&self) {
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
