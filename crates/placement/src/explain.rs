//! Explains why a Placement has the clusters that it has, as a document for people and programs.

use std::collections::HashSet;

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

use crate::conditions::{Condition, Misconfigured, misconfigured};
use crate::input::{Input, Own};
use crate::outcome::{Candidate, Filter, Outcome};
use crate::prepared::Prepared;
use crate::schedule::schedule;

/// Runs a Placement, and reports for each candidate which filter refused it, or each prioritizer's
/// score and weight; whether this run chooses it (`isChosen`), and whether the existing decisions
/// have it (`isDecided`). Decided clusters that are not candidates are filtered by `NotInSets`.
///
/// For a Placement that cannot be evaluated (`isEvaluated`), it reports only the candidates.
pub fn explain(input: &Input<'_>) -> Value {
    let outcome = schedule(input);
    let is_evaluated = outcome.groups.is_some();
    // The other condition would say that nothing is chosen, which is not so.
    let conditions = if is_evaluated { &outcome.conditions[..] } else { &outcome.conditions[..1] };
    let mut document = document(input.placement, conditions);
    document["isEvaluated"] = is_evaluated.into();
    document["candidates"] = candidates(input, &outcome).into();
    let groups = outcome.groups.iter().flatten();
    document["groups"] = groups.map(|group| json!({"name": group.name, "clusters": group.clusters})).collect();
    document["warnings"] = outcome.warnings.iter().map(|warning| warning.message.clone()).collect();
    let again = outcome.requeue_at.into_iter().chain(outcome.first_expiry(input)).min();
    document["runsAgainAt"] = again.and_then(|moment| moment.format(&Rfc3339).ok()).into();
    document
}

fn candidates(input: &Input<'_>, outcome: &Outcome<'_>) -> Vec<Value> {
    let own = Own::of(input);
    let chosen: HashSet<&str> = outcome.chosen.iter().copied().collect();
    let mut told: Vec<Value> = Vec::new();
    for (index, candidate) in outcome.candidates.iter().enumerate() {
        let name = candidate.cluster.name.as_str();
        let mut row = json!({"cluster": name, "isDecided": own.has(name)});
        if outcome.groups.is_some() {
            row = of_candidate(outcome, index, candidate);
            (row["isChosen"], row["isDecided"]) = (chosen.contains(name).into(), own.has(name).into());
        }
        told.push(row);
    }
    let known: HashSet<&str> = outcome.candidates.iter().map(|candidate| candidate.cluster.name.as_str()).collect();
    let mut others: Vec<&str> = own.names().filter(|name| !known.contains(name)).collect();
    others.sort_unstable();
    for name in others {
        let mut row = json!({"cluster": name, "filteredBy": "NotInSets", "scores": [], "total": 0, "isDecided": true});
        if outcome.groups.is_some() {
            row["isChosen"] = false.into();
        }
        told.push(row);
    }
    told
}

/// The document of a Placement that cannot be read, with the reason; `decided_generation` is that
/// of [`Input`].
pub fn unreadable(placement: &Prepared, why: &str, decided_generation: Option<i64>) -> Value {
    let mut document = document(placement, &[of_unreadable(placement, why, decided_generation)]);
    document["isEvaluated"] = false.into();
    document
}

/// `PlacementMisconfigured` of a Placement that cannot be read.
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
