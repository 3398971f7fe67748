//! The choices of Placements: their decisions, and the counts in their statuses.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api::cluster_name::ClusterName;
use delivery::rollout::DecisionGroup;
use placement::objects::PLACEMENT_LABEL;
use placement::slices::{GROUP_INDEX_LABEL, GROUP_NAME_LABEL};
use serde_json::Value;

use crate::wakes::Key;

/// The status of a Placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub version: String,
    /// Number of clusters; none if the Placement has not been counted, from which nothing follows.
    pub selected: Option<usize>,
    /// Number of decision groups.
    pub groups: usize,
}

/// All decisions, and those of each Placement.
#[derive(Default)]
pub struct Decisions {
    all: HashMap<Key, Decision>,
    of: HashMap<Key, BTreeSet<String>>,
}

struct Decision {
    version: String,
    said: Said,
}

/// The relevant fields of a decision.
#[derive(PartialEq)]
struct Said {
    placement: Option<Key>,
    /// The text in its labels.
    index: String,
    name: String,
    clusters: Vec<String>,
}

// === impl Chosen ===

impl Chosen {
    pub fn read(object: &Value, version: String) -> Self {
        let status = &object["status"];
        Self {
            version,
            selected: status["numberOfSelectedClusters"].as_u64().and_then(|count| usize::try_from(count).ok()),
            groups: status["decisionGroups"].as_array().map_or(0, Vec::len),
        }
    }

    pub fn says_as(&self, other: &Self) -> bool {
        (self.selected, self.groups) == (other.selected, other.groups)
    }
}

// === impl Decisions ===

impl Decisions {
    /// Stores a decision. Returns the Placements for which something changed.
    pub fn put(&mut self, key: &Key, object: &Value, version: String) -> BTreeSet<Key> {
        let said = Said::read(key, object);
        if let Some(known) = self.all.get_mut(key).filter(|known| known.said == said) {
            known.version = version;
            return BTreeSet::new();
        }
        let mut placements = self.remove(key);
        if let Some(placement) = &said.placement {
            self.of.entry(placement.clone()).or_default().insert(key.1.clone());
            placements.insert(placement.clone());
        }
        self.all.insert(key.clone(), Decision { version, said });
        placements
    }

    /// Removes a decision. Returns the same.
    pub fn remove(&mut self, key: &Key) -> BTreeSet<Key> {
        let Some(placement) = self.all.remove(key).and_then(|before| before.said.placement) else {
            return BTreeSet::new();
        };
        if let Some(names) = self.of.get_mut(&placement) {
            names.remove(&key.1);
            if names.is_empty() {
                self.of.remove(&placement);
            }
        }
        BTreeSet::from([placement])
    }

    pub fn version(&self, key: &Key) -> Option<&str> {
        self.all.get(key).map(|decision| decision.version.as_str())
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.all.keys()
    }

    /// By index and name. A decision without an index belongs to the first group, as upstream.
    pub fn groups(&self, placement: &Key) -> Result<Vec<DecisionGroup<'_>>, String> {
        let mut groups: BTreeMap<(usize, &str), BTreeSet<&str>> = BTreeMap::new();
        for decision in self.of.get(placement).into_iter().flatten() {
            let Some(Decision { said, .. }) = self.all.get(&(placement.0.clone(), decision.clone())) else { continue };
            let index = if said.index.is_empty() { Ok(0) } else { said.index.parse() };
            let index: usize = index.map_err(|_| {
                format!("PlacementDecision {decision}: its label {GROUP_INDEX_LABEL} is no number: {:?}", said.index)
            })?;
            groups.entry((index, &said.name)).or_default().extend(said.clusters.iter().map(String::as_str));
        }
        let group = |((index, name), clusters): ((usize, _), BTreeSet<_>)| DecisionGroup {
            index,
            name,
            clusters: clusters.into_iter().collect(),
        };
        Ok(groups.into_iter().map(group).collect())
    }
}

fn is_cluster(name: &str) -> bool {
    ClusterName::parse(name).is_ok()
}

// === impl Said ===

impl Said {
    fn read((namespace, _): &Key, object: &Value) -> Self {
        let label = |name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default().to_owned();
        let placement = Some(label(PLACEMENT_LABEL)).filter(|name| !name.is_empty());
        let decisions = object["status"]["decisions"].as_array().into_iter().flatten();
        // An invalid cluster name has no namespace either: it counts, but is no chosen cluster.
        let clusters = decisions.filter_map(|one| one["clusterName"].as_str()).filter(|name| is_cluster(name));
        Self {
            placement: placement.map(|name| (namespace.clone(), name)),
            index: label(GROUP_INDEX_LABEL),
            name: label(GROUP_NAME_LABEL),
            clusters: clusters.map(str::to_owned).collect(),
        }
    }
}
