//! Why a Placement has the clusters that it has, as a document for people and programs.

use std::collections::HashSet;

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

use crate::conditions::{Condition, Misconfigured, misconfigured};
use crate::input::{Input, Own};
use crate::outcome::{Candidate, Filter, Outcome};
use crate::prepared::Prepared;
use crate::schedule::schedule;

/// Runs a Placement, and tells of each candidate who filtered it, or each prioritizer's score and
/// weight; whether it `isChosen` by this run, and whether it `isDecided` by what is there.
pub fn explain(input: &Input<'_>) -> Value {
    let outcome = schedule(input);
    let (chosen, own) = (outcome.chosen.iter().copied().collect::<HashSet<_>>(), Own::of(input));
    let candidates = outcome.candidates.iter().enumerate().map(|(index, candidate)| {
        let mut told = of_candidate(&outcome, index, candidate);
        let name = candidate.cluster.name.as_str();
        told["isChosen"] = chosen.contains(name).into();
        told["isDecided"] = own.has(name).into();
        told
    });
    let groups = outcome.groups.iter().flatten();
    let mut document = document(input.placement, &outcome.conditions);
    document["candidates"] = candidates.collect();
    document["groups"] = groups.map(|group| json!({"name": group.name, "clusters": group.clusters})).collect();
    document["warnings"] = outcome.warnings.iter().map(|warning| warning.message.clone()).collect();
    document["runsAgainAt"] = outcome.requeue_at.and_then(|moment| moment.format(&Rfc3339).ok()).into();
    document
}

/// The same of one that cannot be read, and why; `decided_generation` is as [`Input`] has it.
pub fn unreadable(placement: &Prepared, why: &str, decided_generation: Option<i64>) -> Value {
    document(placement, &[of_unreadable(placement, why, decided_generation)])
}

/// `PlacementMisconfigured` of one that cannot be read.
pub fn of_unreadable(placement: &Prepared, why: &str, decided_generation: Option<i64>) -> Condition {
    misconfigured(Some(&Misconfigured { plugin: "", why: why.to_owned() }), placement, decided_generation)
}

fn document(placement: &Prepared, conditions: &[Condition]) -> Value {
    json!({
        "namespace": placement.namespace,
        "name": placement.name,
        "generation": placement.generation,
        "isAtRest": placement.is_at_rest,
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
        "candidates": [],
    })
}

fn condition(condition: &Condition) -> Value {
    let status = if condition.is_true { "True" } else { "False" };
    json!({"type": condition.kind, "status": status, "reason": condition.reason, "message": condition.message})
}

fn of_candidate(outcome: &Outcome<'_>, index: usize, candidate: &Candidate<'_>) -> Value {
    let filter = candidate.filtered_by.map(|filter| match filter {
        Filter::Predicate => "Predicate",
        Filter::TaintToleration => "TaintToleration",
    });
    let scored = outcome.prioritizers.iter().filter(|_| filter.is_none()).filter_map(|scored| {
        let score = (*scored.scores.get(index)?)?;
        Some(json!({"prioritizer": scored.name, "score": score, "weight": scored.weight}))
    });
    json!({
        "cluster": candidate.cluster.name,
        "filteredBy": filter,
        "scores": scored.collect::<Vec<_>>(),
        "total": candidate.total,
    })
}
