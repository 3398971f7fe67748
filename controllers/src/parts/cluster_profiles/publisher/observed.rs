//! The registered clusters, and the last observation of each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use kube::ResourceExt as _;
use parking_lot::Mutex;
use register::outcome::Outcome;
use register::profile::{ObservedMember, Property, Record};
use tokio::time::Instant;

use crate::secrets::Meta;

/// Interval of reads of a member's version and properties.
const DETAILS: Duration = Duration::from_mins(10);
/// Time between two probes, however often the Secret changes.
const NOT_BEFORE: Duration = Duration::from_secs(5);
/// Prefix of annotations with a member's last status, which change without the registration.
const STATUS: &str = "status.cluster.core.oam.dev/";

/// None: not listed yet.
#[derive(Default)]
pub struct Clusters(Mutex<Option<HashMap<String, ObservedCluster>>>);

/// Whether a probe is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Now { is_doubtful: bool },
    In(Duration),
}

struct ObservedCluster {
    uid: String,
    version: String,
    status: BTreeMap<String, String>,
    record: Record,
    seen: ObservedMember,
    /// None: not probed yet.
    probed: Option<Instant>,
    next_probe: Instant,
    /// None: with the next probe.
    next_details: Option<Instant>,
    /// Failed writes in a row.
    failures: u32,
}

// === impl Clusters ===

impl Clusters {
    /// Takes a list of the clusters. Keeps the state of those that were known.
    pub fn listed(&self, secrets: &[Meta]) {
        let names: HashSet<String> = secrets.iter().map(Meta::name_any).collect();
        self.0.lock().get_or_insert_default().retain(|name, _| names.contains(name));
        for secret in secrets {
            self.see(secret);
        }
    }

    /// Takes a new or changed Secret. A change of its content, or a new object with its name, may
    /// mean another member, so earlier observations no longer count.
    pub fn see(&self, secret: &Meta) {
        let new = ObservedCluster::new(secret);
        let mut clusters = self.0.lock();
        let Some(clusters) = clusters.as_mut() else { return };
        let Some(known) = clusters.get_mut(&secret.name_any()) else {
            clusters.insert(secret.name_any(), new);
            return;
        };
        if known.uid != new.uid {
            *known = new;
        } else if known.version != new.version {
            if known.status == new.status {
                let earliest = known.probed.map_or_else(Instant::now, |probed| probed + NOT_BEFORE);
                known.next_probe = known.next_probe.min(earliest);
                known.next_details = None;
            }
            (known.version, known.status) = (new.version, new.status);
        }
    }

    pub fn forget(&self, name: &str) {
        if let Some(clusters) = self.0.lock().as_mut() {
            clusters.remove(name);
        }
    }

    pub fn are_listed(&self) -> bool {
        self.0.lock().is_some()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.lock().as_ref().is_some_and(|clusters| clusters.contains_key(name))
    }

    pub fn names(&self) -> Vec<String> {
        self.0.lock().iter().flat_map(HashMap::keys).cloned().collect()
    }

    /// `was_well`: the status in the cluster's profile, which counts until the first probe.
    pub fn due(&self, name: &str, was_well: bool) -> Due {
        let due = self.with(name, |known| {
            let wait = known.next_probe.saturating_duration_since(Instant::now());
            let is_well = if known.probed.is_some() { known.record.is_well() } else { was_well };
            if wait.is_zero() { Due::Now { is_doubtful: !is_well } } else { Due::In(wait) }
        });
        due.unwrap_or(Due::In(NOT_BEFORE))
    }

    /// Takes the outcome of a probe. Returns the wait until the next one, which `spread` chooses up
    /// to a limit.
    pub fn probed(&self, name: &str, outcome: Outcome, spread: impl FnOnce(Duration) -> Duration) -> Duration {
        let wait = self.with(name, |known| {
            let was_well = known.record.is_well();
            let wait = spread(known.record.take(outcome));
            known.seen.health = known.record.health().cloned();
            if was_well && !known.record.is_well() {
                // The member may come back with another version.
                known.next_details = None;
            }
            let now = Instant::now();
            (known.probed, known.next_probe) = (Some(now), now + wait);
            wait
        });
        wait.unwrap_or(NOT_BEFORE)
    }

    pub fn wants_details(&self, name: &str) -> bool {
        self.with(name, |known| known.next_details.is_none_or(|next| next <= Instant::now())).unwrap_or(false)
    }

    /// Takes the details that a member reports. Those that it does not report now stay.
    pub fn detailed(&self, name: &str, version: Option<String>, properties: Option<Vec<Property>>) {
        self.with(name, |known| {
            known.next_details = Some(Instant::now() + DETAILS);
            known.seen.version = version.or(known.seen.version.take());
            known.seen.properties = properties.or(known.seen.properties.take());
        });
    }

    pub fn seen(&self, name: &str) -> ObservedMember {
        self.with(name, |known| known.seen.clone()).unwrap_or_default()
    }

    pub fn written(&self, name: &str) {
        self.with(name, |known| known.failures = 0);
    }

    /// Counts a failed write. Returns the number of failures in a row before it.
    pub fn failed(&self, name: &str) -> u32 {
        let before = self.with(name, |known| {
            known.failures = known.failures.saturating_add(1);
            known.failures - 1
        });
        before.unwrap_or(0)
    }

    fn with<T>(&self, name: &str, run: impl FnOnce(&mut ObservedCluster) -> T) -> Option<T> {
        self.0.lock().as_mut()?.get_mut(name).map(run)
    }
}

// === impl ObservedCluster ===

impl ObservedCluster {
    fn new(secret: &Meta) -> Self {
        let status = secret.annotations().iter().filter(|(key, _)| key.starts_with(STATUS));
        Self {
            uid: secret.uid().unwrap_or_default(),
            version: secret.resource_version().unwrap_or_default(),
            status: status.map(|(key, value)| (key.clone(), value.clone())).collect(),
            record: Record::default(),
            seen: ObservedMember::default(),
            probed: None,
            next_probe: Instant::now(),
            next_details: None,
            failures: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(uid: &str, version: &str, healthy: &str) -> Meta {
        let meta = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c1", "uid": uid,
            "resourceVersion": version, "annotations": {"status.cluster.core.oam.dev/healthy": healthy}}});
        serde_json::from_value(meta).unwrap()
    }

    fn probed(clusters: &Clusters, outcome: Outcome) -> u64 {
        clusters.probed("c1", outcome, |window| window).as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_registration_is_probed_and_one_of_its_health_is_not() {
        let clusters = Clusters::default();
        assert!(!clusters.are_listed() && !clusters.has("c1"));
        clusters.listed(&[secret("u", "1", "True")]);
        assert_eq!(clusters.due("c1", true), Due::Now { is_doubtful: false }, "before this program started");
        assert_eq!(clusters.due("c1", false), Due::Now { is_doubtful: true }, "never asked");
        assert!(clusters.wants_details("c1"));
        clusters.detailed("c1", Some("v1".to_owned()), None);
        assert_eq!(probed(&clusters, Outcome::Healthy), 60);
        assert_eq!((clusters.due("c1", false), clusters.wants_details("c1")), (Due::In(Duration::from_mins(1)), false));
        clusters.see(&secret("u", "2", "False"));
        assert_eq!(clusters.due("c1", false), Due::In(Duration::from_mins(1)));
        clusters.see(&secret("u", "3", "False"));
        assert_eq!((clusters.due("c1", false), clusters.wants_details("c1")), (Due::In(NOT_BEFORE), true));
        tokio::time::advance(NOT_BEFORE).await;
        assert_eq!(clusters.due("c1", false), Due::Now { is_doubtful: false });
        clusters.see(&secret("other", "4", "False"));
        assert_eq!(
            (clusters.due("c1", false), clusters.seen("c1")),
            (Due::Now { is_doubtful: true }, ObservedMember::default())
        );
        clusters.listed(&[]);
        assert!(clusters.are_listed() && !clusters.has("c1"));
    }

    #[tokio::test(start_paused = true)]
    async fn details_are_asked_again_after_a_while_and_of_who_was_away() {
        let clusters = Clusters::default();
        clusters.listed(&[secret("u", "1", "True")]);
        clusters.detailed("c1", Some("v1".to_owned()), Some(Vec::new()));
        probed(&clusters, Outcome::Healthy);
        let moment = Duration::from_secs(1);
        tokio::time::advance(DETAILS.saturating_sub(moment)).await;
        assert!(!clusters.wants_details("c1"));
        tokio::time::advance(moment).await;
        assert!(clusters.wants_details("c1"));
        clusters.detailed("c1", None, None);
        let seen = clusters.seen("c1");
        assert_eq!((seen.version.as_deref(), seen.properties), (Some("v1"), Some(Vec::new())), "as it was said");
        probed(&clusters, Outcome::Unreachable(String::new()));
        assert!(clusters.wants_details("c1"));
    }
}
