//! Indexes of decisions and scores, which watches keep up to date.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;

use crate::objects::{AddOnPlacementScore, PlacementDecision};

pub type Names<V> = HashMap<String, V, RandomState>;

/// All decisions of a hub.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    namespaces: Names<Namespace>,
    /// How often decisions name a cluster.
    uses: Names<u64>,
    /// Number of clusters, by how often decisions name them.
    named: BTreeMap<u64, usize>,
}

#[derive(Debug, Clone, Default)]
struct Namespace {
    objects: Names<PlacementDecision>,
    /// Names of objects by the Placement that their label names.
    owned: Names<BTreeSet<String>>,
}

/// All scores of a hub: by resource, then by cluster.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    resources: Names<Names<AddOnPlacementScore>>,
}

// === impl Decisions ===

impl Decisions {
    /// Adds or replaces a decision. Returns the previous one.
    pub fn put(&mut self, decision: PlacementDecision) -> Option<PlacementDecision> {
        let before = self.remove(&decision.namespace, &decision.name);
        for cluster in &decision.clusters {
            self.use_again(cluster);
        }
        let namespace = self.namespaces.entry(decision.namespace.clone()).or_default();
        if let Some(placement) = &decision.placement {
            namespace.owned.entry(placement.clone()).or_default().insert(decision.name.clone());
        }
        namespace.objects.insert(decision.name.clone(), decision);
        before
    }

    /// Removes a decision. Returns it.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<PlacementDecision> {
        let objects = self.namespaces.get_mut(namespace)?;
        let decision = objects.objects.remove(name)?;
        if let Some(placement) = &decision.placement
            && let Some(names) = objects.owned.get_mut(placement)
        {
            names.remove(name);
            if names.is_empty() {
                objects.owned.remove(placement);
            }
        }
        for cluster in &decision.clusters {
            self.use_less(cluster);
        }
        Some(decision)
    }

    fn use_again(&mut self, cluster: &str) {
        let count = match self.uses.get_mut(cluster) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => *self.uses.entry(cluster.to_owned()).or_insert(1),
        };
        self.count(count - 1, count);
    }

    fn use_less(&mut self, cluster: &str) {
        let Some(count) = self.uses.get_mut(cluster) else { return };
        *count -= 1;
        let count = *count;
        if count == 0 {
            self.uses.remove(cluster);
        }
        self.count(count + 1, count);
    }

    /// Moves a cluster from the count `before` to the count `now`.
    fn count(&mut self, before: u64, now: u64) {
        if now > 0 {
            *self.named.entry(now).or_default() += 1;
        }
        if let Some(clusters) = self.named.get_mut(&before) {
            *clusters -= 1;
            if *clusters == 0 {
                self.named.remove(&before);
            }
        }
    }

    /// The decisions of a Placement, sorted by name.
    pub fn of(&self, namespace: &str, placement: &str) -> impl Iterator<Item = &PlacementDecision> {
        let objects = self.namespaces.get(namespace);
        let names = objects.and_then(|objects| objects.owned.get(placement)).into_iter().flatten();
        names.filter_map(move |name| objects?.objects.get(name))
    }

    /// How often decisions name `cluster`.
    pub fn uses(&self, cluster: &str) -> u64 {
        self.uses.get(cluster).copied().unwrap_or(0)
    }

    /// How often decisions name clusters, highest first, each with the number of clusters that they
    /// name so often.
    pub fn most_used(&self) -> impl Iterator<Item = (u64, usize)> {
        self.named.iter().rev().map(|(count, clusters)| (*count, *clusters))
    }
}

impl FromIterator<PlacementDecision> for Decisions {
    fn from_iter<I: IntoIterator<Item = PlacementDecision>>(decisions: I) -> Self {
        let mut index = Self::default();
        for decision in decisions {
            index.put(decision);
        }
        index
    }
}

// === impl Scores ===

impl Scores {
    /// Adds or replaces scores. Returns the previous ones.
    pub fn put(&mut self, score: AddOnPlacementScore) -> Option<AddOnPlacementScore> {
        let clusters = self.resources.entry(score.resource.clone()).or_default();
        clusters.insert(score.cluster.clone(), score)
    }

    /// Removes scores. Returns them.
    pub fn remove(&mut self, cluster: &str, resource: &str) -> Option<AddOnPlacementScore> {
        let clusters = self.resources.get_mut(resource)?;
        let before = clusters.remove(cluster);
        // Agents choose the names of resources: empty entries would stay for ever.
        if clusters.is_empty() {
            self.resources.remove(resource);
        }
        before
    }

    pub fn get(&self, cluster: &str, resource: &str) -> Option<&AddOnPlacementScore> {
        self.of(resource)?.get(cluster)
    }

    /// Cluster and resource of each score.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.resources
            .iter()
            .flat_map(|(resource, clusters)| clusters.keys().map(move |cluster| (cluster.as_str(), resource.as_str())))
    }

    /// The scores of one resource, by cluster.
    pub fn of(&self, resource: &str) -> Option<&Names<AddOnPlacementScore>> {
        self.resources.get(resource)
    }
}

impl FromIterator<AddOnPlacementScore> for Scores {
    fn from_iter<I: IntoIterator<Item = AddOnPlacementScore>>(scores: I) -> Self {
        let mut index = Self::default();
        for score in scores {
            index.put(score);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(name: &str, placement: Option<&str>, clusters: &[&str]) -> PlacementDecision {
        PlacementDecision {
            namespace: "team".into(),
            name: name.into(),
            placement: placement.map(str::to_owned),
            clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
        }
    }

    #[test]
    fn uses_follow_what_is_put_and_removed() {
        let mut index = Decisions::from_iter([decision("a", Some("p"), &["c1", "c2"]), decision("b", None, &["c1"])]);
        assert_eq!((index.uses("c1"), index.uses("c2"), index.uses("c3")), (2, 1, 0));
        assert_eq!(index.most_used().collect::<Vec<_>>(), [(2, 1), (1, 1)]);
        let before = index.put(decision("a", Some("q"), &["c3"]));
        assert_eq!(before, Some(decision("a", Some("p"), &["c1", "c2"])));
        assert_eq!((index.uses("c1"), index.uses("c2"), index.uses("c3")), (1, 0, 1));
        assert_eq!(index.most_used().collect::<Vec<_>>(), [(1, 2)]);
        assert_eq!(index.remove("team", "b"), Some(decision("b", None, &["c1"])));
        assert_eq!((index.uses("c1"), index.remove("team", "b"), index.remove("other", "a")), (0, None, None));
    }

    #[test]
    fn a_placement_has_the_decisions_that_are_labelled_with_it() {
        let mut index = Decisions::from_iter([
            decision("b", Some("p"), &[]),
            decision("a", Some("p"), &[]),
            decision("p-3", None, &[]),
        ]);
        let names = |index: &Decisions| index.of("team", "p").map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&index), ["a", "b"]);
        index.put(decision("a", Some("q"), &[]));
        assert_eq!(names(&index), ["b"]);
        assert_eq!(index.of("other", "p").count(), 0);
    }
    #[test]
    fn nothing_stays_of_scores_that_are_gone() {
        let score = |cluster: &str| -> AddOnPlacementScore {
            let object = serde_json::json!({"metadata": {"namespace": cluster, "name": "usage"}});
            serde_json::from_value(object).unwrap()
        };
        let mut index = Scores::from_iter([score("c1"), score("c2")]);
        let mut keys: Vec<_> = index.keys().collect();
        keys.sort_unstable();
        assert_eq!(keys, [("c1", "usage"), ("c2", "usage")]);
        assert!(index.remove("c1", "usage").is_some() && index.get("c2", "usage").is_some());
        assert!(index.remove("c2", "usage").is_some());
        assert!(index.remove("c2", "usage").is_none() && index.resources.is_empty());
    }
}
