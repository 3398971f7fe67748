//! The candidates: clusters of the sets that are bound in the namespace.

use std::collections::{BTreeSet, HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::input::Input;
use crate::objects::{ManagedCluster, ManagedClusterSet, Members, SET_LABEL};

#[derive(Debug)]
pub struct Candidates<'a> {
    /// Number of bindings in the namespace whose set exists.
    pub bindings: usize,
    /// Names of the sets that are bound and requested, sorted.
    pub sets: Vec<&'a str>,
    /// Clusters of those sets, sorted by name, each once, without those that are being deleted.
    pub clusters: Vec<&'a ManagedCluster>,
    /// What is wrong with one of the sets.
    pub unreadable: Option<String>,
}

pub fn candidates<'a>(input: &Input<'a>) -> Candidates<'a> {
    let known: HashMap<&str, &ManagedClusterSet, RandomState> =
        input.sets.iter().map(|set| (set.name.as_str(), *set)).collect();
    let is_here = |namespace: &str| namespace == input.placement.namespace;
    let mut bindings = 0;
    let mut bound: BTreeSet<&'a str> = BTreeSet::new();
    for binding in input.bindings.iter().filter(|binding| is_here(&binding.namespace)) {
        if let Some(set) = known.get(binding.name.as_str()) {
            bindings += 1;
            bound.insert(&set.name);
        }
    }
    let asked = &input.placement.cluster_sets;
    bound.retain(|set| asked.is_empty() || asked.iter().any(|name| name == set));
    let sets: Vec<&ManagedClusterSet> = bound.iter().filter_map(|name| known.get(name).copied()).collect();
    let unreadable = sets.iter().find_map(|set| match &set.members {
        Members::Unreadable(why) => Some(format!("ManagedClusterSet {}: {why}", set.name)),
        _ => None,
    });
    Candidates { bindings, clusters: members(input.clusters, &sets), sets: bound.into_iter().collect(), unreadable }
}

fn members<'a>(clusters: &'a [&'a ManagedCluster], sets: &[&ManagedClusterSet]) -> Vec<&'a ManagedCluster> {
    let is_labelled = |set: &&&ManagedClusterSet| matches!(set.members, Members::Labelled);
    let labelled: HashSet<&str, RandomState> = sets.iter().filter(is_labelled).map(|set| set.name.as_str()).collect();
    let selecting: Vec<&ManagedClusterSet> = sets.iter().filter(|set| !is_labelled(set)).copied().collect();
    let is_member = |cluster: &ManagedCluster| {
        let label = || cluster.labels.get(SET_LABEL);
        (!labelled.is_empty() && label().is_some_and(|set| labelled.contains(set)))
            || selecting.iter().any(|set| set.has(cluster))
    };
    let mut found = Vec::with_capacity(clusters.len());
    found.extend(clusters.iter().copied().filter(|cluster| !cluster.is_deleting && is_member(cluster)));
    // Fast if they are sorted already.
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.dedup_by(|a, b| a.name == b.name);
    found
}
