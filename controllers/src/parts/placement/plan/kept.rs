//! During a removal hold, keeps clusters in the decisions that the run did not choose.

use std::collections::HashSet;

use placement::Group;
use placement::slices::GROUP_NAME_LABEL;

use super::held;
use crate::parts::placement::world::{ObservedPlacement, World};

/// Adds to `groups` the decided clusters that `has_left` by a removal: each to the first group with
/// the name of its decision's group, or else to the last group. Adds no more than the Placement
/// asks for, so that a smaller number takes effect at once. True if it added any.
pub fn keep<'w>(
    groups: &mut [Group<'w>],
    world: &'w World,
    known: &ObservedPlacement,
    has_left: impl Fn(&str) -> bool,
) -> bool {
    let mut there: HashSet<&str> = groups.iter().flat_map(|group| &group.clusters).copied().collect();
    let mut left = known.prepared.number_of_clusters.unwrap_or(usize::MAX);
    let mut has_kept = false;
    for decided in world.labelled(&known.key).filter_map(|name| held(world, known, name)) {
        let name = decided.labels.get(GROUP_NAME_LABEL).map_or("", String::as_str);
        let position = groups.iter().position(|group| group.name == name);
        let Some(group) = groups.get_mut(position.unwrap_or(groups.len().saturating_sub(1))) else { continue };
        for cluster in decided.clusters.iter().filter(|cluster| has_left(cluster)) {
            if left > 0 && there.insert(cluster) {
                (left, has_kept) = (left - 1, true);
                group.clusters.push(cluster);
            }
        }
    }
    for group in groups {
        group.clusters.sort_unstable();
    }
    has_kept
}
