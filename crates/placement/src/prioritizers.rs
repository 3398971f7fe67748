//! Scores of the remaining clusters, −100 to 100 each. Integers are truncated where upstream
//! truncates them.

mod add_on;

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::input::{Input, Own};
use crate::numbers;
use crate::objects::ManagedCluster;
use crate::outcome::{Candidate, Scored, Warning};
use crate::prepared::{Prioritizer, Weighted};

const MOST: i64 = 100;

/// The scores of one prioritizer, in the order of `candidates`; filtered candidates have none.
pub fn scored<'a>(
    weighted: &'a Weighted,
    candidates: &[Candidate<'a>],
    own: &Own<'a>,
    input: &Input<'a>,
    warnings: &mut Vec<Warning<'a>>,
) -> Scored<'a> {
    let scores = match &weighted.prioritizer {
        Prioritizer::Balance => {
            let busiest = busiest(own, input);
            each(candidates, |cluster| Some(balance(others(&cluster.name, own, input), busiest)))
        }
        Prioritizer::Steady => each(candidates, |cluster| Some(if own.has(&cluster.name) { MOST } else { 0 })),
        Prioritizer::ResourceAllocatableCpu => allocatable(candidates, |cluster| cluster.cpu),
        Prioritizer::ResourceAllocatableMemory => allocatable(candidates, |cluster| cluster.memory),
        Prioritizer::AddOn { resource, score } => {
            let of = add_on::AddOn { plugin: &weighted.name, resource, score };
            of.scores(candidates, input, warnings)
        }
    };
    Scored { name: &weighted.name, weight: weighted.weight, scores }
}

fn each<'a>(
    candidates: &[Candidate<'a>],
    mut score: impl FnMut(&'a ManagedCluster) -> Option<i64>,
) -> Vec<Option<i64>> {
    let of = |candidate: &Candidate<'a>| candidate.filtered_by.is_none().then_some(candidate.cluster);
    candidates.iter().map(|candidate| score(of(candidate)?)).collect()
}

/// How often decisions of other Placements name a cluster.
fn others(cluster: &str, own: &Own<'_>, input: &Input<'_>) -> u64 {
    input.decisions.uses(cluster).saturating_sub(own.count(cluster))
}

/// The most often that decisions of others name any cluster, a candidate or not. Only our own
/// clusters are looked up one by one: for the rest, it is the highest count that clusters other
/// than our own have.
fn busiest(own: &Own<'_>, input: &Input<'_>) -> u64 {
    let mut all_of_own: HashMap<u64, usize, RandomState> = HashMap::default();
    let mut most = 0;
    for cluster in own.names() {
        *all_of_own.entry(input.decisions.uses(cluster)).or_default() += 1;
        most = most.max(others(cluster, own, input));
    }
    let is_of_others = |(count, clusters): &(u64, usize)| all_of_own.get(count).is_none_or(|own| own < clusters);
    let of_others = input.decisions.most_used().find(is_of_others);
    of_others.map_or(most, |(count, _)| most.max(count))
}

/// 100 if no other Placement chose the cluster; −100 for the busiest cluster.
fn balance(count: u64, busiest: u64) -> i64 {
    if count == 0 {
        return MOST;
    }
    let usage = numbers::float_of_unsigned(count) / numbers::float_of_unsigned(busiest);
    2 * numbers::truncated(numbers::float(MOST) * (0.5 - usage))
}

/// Scores each cluster between the least and the most allocatable amount of the remaining clusters.
fn allocatable(candidates: &[Candidate<'_>], of: fn(&ManagedCluster) -> Option<f64>) -> Vec<Option<i64>> {
    let left = candidates.iter().filter(|candidate| candidate.filtered_by.is_none());
    let amounts = left.filter_map(|candidate| of(candidate.cluster));
    let (least, most) = amounts.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most): (f64, f64), amount| {
        (least.min(amount), most.max(amount))
    });
    each(candidates, |cluster| {
        let amount = of(cluster)?;
        let range = most - least;
        if range == 0.0 {
            return Some(MOST);
        }
        let ratio = (amount - least) / range;
        Some(numbers::truncated((ratio - 0.5) * 2.0 * 100.0))
    })
}
