//! Decision groups.

use crate::objects::ManagedCluster;
use crate::outcome::Group;
use crate::prepared::GroupRule;

/// The groups of the chosen clusters: each of the rule's takes what it matches of what is left,
/// the last the rest. There is always one.
pub fn groups<'a>(chosen: &[&'a ManagedCluster], rule: &'a GroupRule) -> Vec<Group<'a>> {
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
