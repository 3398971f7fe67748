//! How many clusters there are, by what is known of them.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::metrics::Metrics;

/// Whether it is accepted, and the status of its availability.
type Group = (bool, &'static str);

pub struct Census {
    metrics: Metrics,
    clusters: Mutex<HashMap<String, Group>>,
}

// === impl Census ===

impl Census {
    pub fn new(metrics: Metrics) -> Self {
        Self { metrics, clusters: Mutex::default() }
    }

    pub fn count(&self, name: &str, is_accepted: bool, available: Option<&str>) {
        let available = match available {
            Some("True") => "true",
            Some("False") => "false",
            _ => "unknown",
        };
        let group = (is_accepted, available);
        let before = self.clusters.lock().insert(name.to_owned(), group);
        if before != Some(group) {
            self.change(before, -1);
            self.change(Some(group), 1);
        }
    }

    pub fn forget(&self, name: &str) {
        let before = self.clusters.lock().remove(name);
        self.change(before, -1);
    }

    fn change(&self, group: Option<Group>, by: i64) {
        if let Some((is_accepted, available)) = group {
            self.metrics.managed_clusters(is_accepted, available, by);
        }
    }
}
