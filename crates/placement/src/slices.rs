//! Decision groups, as `PlacementDecision` objects and as listed in the Placement's status.

use crate::objects::{ManagedCluster, PLACEMENT_LABEL};
use crate::outcome::Group;
use crate::prepared::GroupRule;

/// Most clusters of one object.
pub const SLICE: usize = 100;
/// Label of decisions: the name of their group, which may be empty.
pub const GROUP_NAME_LABEL: &str = "cluster.open-cluster-management.io/decision-group-name";
/// Label of decisions: the position of their group, from 0.
pub const GROUP_INDEX_LABEL: &str = "cluster.open-cluster-management.io/decision-group-index";

/// The wanted state of a `PlacementDecision`. It belongs to its Placement, which is its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionObject<'o> {
    /// `<placement>-decision-<n>`, counted from 1 over all groups.
    pub name: String,
    /// Position of its group, from 0.
    pub group_index: usize,
    pub group_name: &'o str,
    /// At most [`SLICE`], sorted.
    pub clusters: &'o [&'o str],
}

/// An entry of the Placement's `status.decisionGroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus<'o> {
    pub index: usize,
    pub name: &'o str,
    /// Names of the objects.
    pub decisions: Vec<String>,
    pub cluster_count: usize,
}

/// The groups of the chosen clusters: each of the rule's takes the remaining clusters that it
/// matches, the last takes the rest. There is always one.
pub(crate) fn groups<'a>(chosen: &[&'a ManagedCluster], rule: &'a GroupRule) -> Vec<Group<'a>> {
    let size = rule.size.within(chosen.len()).unwrap_or(chosen.len());
    let mut rest: Vec<&ManagedCluster> = chosen.to_vec();
    rest.sort_by(|a, b| a.name.cmp(&b.name));
    let mut groups = Vec::new();
    for group in &rule.groups {
        let matched: Vec<&ManagedCluster> = rest.extract_if(.., |cluster| group.has(cluster)).collect();
        groups.extend(split(&group.name, &matched, size));
    }
    groups.extend(split("", &rest, size));
    if groups.is_empty() {
        groups.push(Group { name: "", clusters: Vec::new() });
    }
    groups
}

fn split<'a>(name: &'a str, clusters: &[&'a ManagedCluster], size: usize) -> impl Iterator<Item = Group<'a>> {
    let names = |part: &[&'a ManagedCluster]| part.iter().map(|cluster| cluster.name.as_str()).collect();
    clusters.chunks(size.max(1)).map(move |part| Group { name, clusters: names(part) })
}

/// The objects of `groups`: slices of each, at least one.
pub fn objects<'o>(placement: &str, groups: &'o [Group<'o>]) -> Vec<DecisionObject<'o>> {
    let mut objects: Vec<DecisionObject<'o>> = Vec::new();
    for (group_index, group) in groups.iter().enumerate() {
        let empty = group.clusters.is_empty().then_some(&group.clusters[..]);
        for clusters in group.clusters.chunks(SLICE).chain(empty) {
            let name = format!("{placement}-decision-{}", objects.len() + 1);
            objects.push(DecisionObject { name, group_index, group_name: group.name, clusters });
        }
    }
    objects
}

/// `status.decisionGroups` of a Placement that has these objects.
pub fn statuses<'o>(groups: &'o [Group<'o>], objects: &[DecisionObject<'_>]) -> Vec<GroupStatus<'o>> {
    // Objects are in the order of their groups.
    let mut of_group = objects.chunk_by(|a, b| a.group_index == b.group_index);
    let mut status = |(index, group): (usize, &'o Group<'o>)| GroupStatus {
        index,
        name: group.name,
        decisions: of_group.next().into_iter().flatten().map(|object| object.name.clone()).collect(),
        cluster_count: group.clusters.len(),
    };
    groups.iter().enumerate().map(&mut status).collect()
}

// === impl DecisionObject ===

impl DecisionObject<'_> {
    /// Its labels; it has no others.
    pub fn labels(&self, placement: &str) -> [(&'static str, String); 3] {
        [
            (PLACEMENT_LABEL, placement.to_owned()),
            (GROUP_NAME_LABEL, self.group_name.to_owned()),
            (GROUP_INDEX_LABEL, self.group_index.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group<'a>(name: &'a str, clusters: &[&'a str]) -> Group<'a> {
        Group { name, clusters: clusters.to_vec() }
    }

    #[test]
    fn a_group_is_cut_into_slices_and_groups_never_share_one() {
        let names: Vec<String> = (0..250).map(|at| format!("c{at:03}")).collect();
        let many: Vec<&str> = names.iter().map(String::as_str).collect();
        let groups = [group("canary", &many[..1]), group("", &many)];
        let objects = objects("p", &groups);
        let told: Vec<_> = objects.iter().map(|one| (&*one.name, one.group_index, one.clusters.len())).collect();
        let wanted =
            [("p-decision-1", 0, 1), ("p-decision-2", 1, 100), ("p-decision-3", 1, 100), ("p-decision-4", 1, 50)];
        assert_eq!(told, wanted);
        let statuses = statuses(&groups, &objects);
        assert_eq!((statuses[1].cluster_count, statuses[1].decisions.len(), statuses[0].name), (250, 3, "canary"));
        assert_eq!(
            objects[0].labels("p").map(|(_, value)| value),
            ["p".to_owned(), "canary".to_owned(), "0".to_owned()]
        );
    }

    #[test]
    fn there_is_always_one_object() {
        let groups = [group("", &[])];
        let objects = objects("p", &groups);
        assert_eq!((objects.len(), &*objects[0].name, objects[0].clusters.len()), (1, "p-decision-1", 0));
        assert_eq!(statuses(&groups, &objects)[0].decisions, ["p-decision-1"]);
    }
}
