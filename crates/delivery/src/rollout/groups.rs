//! Decision groups of a Placement.

use std::collections::BTreeSet;

use super::strategy::MandatoryDecisionGroup;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionGroup<'a> {
    /// From 0, as the decisions' label says.
    pub index: usize,
    /// Several may have one name, or none.
    pub name: &'a str,
    pub clusters: Vec<&'a str>,
}

/// All clusters of groups, sorted.
pub fn clusters<'g, 'a: 'g>(groups: impl Iterator<Item = &'g DecisionGroup<'a>>) -> BTreeSet<&'a str> {
    groups.flat_map(|group| group.clusters.iter().copied()).collect()
}

/// The groups that are named, and the others, each by index. A name means all groups of that name.
pub fn split<'g, 'a>(
    groups: &'g [DecisionGroup<'a>],
    named: &[MandatoryDecisionGroup],
) -> (Vec<&'g DecisionGroup<'a>>, Vec<&'g DecisionGroup<'a>>) {
    let mut sorted: Vec<&DecisionGroup<'a>> = groups.iter().collect();
    sorted.sort_by_key(|group| group.index);
    sorted.into_iter().partition(|group| named.iter().any(|one| one.means(group)))
}

// === impl MandatoryDecisionGroup ===

impl MandatoryDecisionGroup {
    fn means(&self, group: &DecisionGroup<'_>) -> bool {
        if self.group_name.is_empty() { self.group_index == group.index } else { self.group_name == group.name }
    }
}
