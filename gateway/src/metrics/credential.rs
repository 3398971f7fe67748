//! Metrics of clusters' credentials: their expiry, and runs of the programs that issue them.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{ClusterLabels, ClusterMetrics};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RunLabels {
    cluster: Arc<str>,
    result: &'static str,
}

/// The families. Only clusters with a credential plugin have runs.
#[derive(Clone, Default)]
pub(super) struct Families {
    runs: Family<RunLabels, Counter>,
    expiry: Family<ClusterLabels, Gauge>,
}

/// `success`, and the kinds of [`exec_credential::ExecError`].
const RESULTS: [&str; 8] = ["success", "refused", "not_found", "error", "busy", "timeout", "failed", "bad_output"];

// === impl Families ===

impl Families {
    pub(super) fn announce(&self, registry: &mut Registry) {
        registry.register(
            "cluster_gateway_credential_refreshes",
            "Runs of the cluster's credential plugin, by result",
            self.runs.clone(),
        );
        registry.register(
            "cluster_gateway_credential_expiry_timestamp_seconds",
            "Expiry of the credential in use, for clusters whose credential has one",
            self.expiry.clone(),
        );
    }

    pub(super) fn remove(&self, labels: &ClusterLabels) {
        for result in RESULTS {
            self.runs.remove(&RunLabels { cluster: labels.cluster.clone(), result });
        }
        self.expiry.remove(labels);
    }
}

// === impl ClusterMetrics ===

impl ClusterMetrics {
    /// Counts a run of the program; `result` is one of [`RESULTS`].
    pub fn credential_run(&self, result: &'static str) {
        let held = self.life.hold();
        if held.is_over() {
            return;
        }
        let labels = RunLabels { cluster: self.labels.cluster.clone(), result };
        self.families.credential.runs.get_or_create(&labels).inc();
    }

    /// Records the expiry of a new credential; `None` means that it never expires.
    pub fn credential_expires(&self, at: Option<SystemTime>) {
        let held = self.life.hold();
        if held.is_over() {
            return;
        }
        let expiry = &self.families.credential.expiry;
        match at {
            None => drop(expiry.remove(&self.labels)),
            Some(at) => {
                let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                expiry.get_or_create(&self.labels).set(i64::try_from(seconds).unwrap_or(i64::MAX));
            }
        }
    }
}
