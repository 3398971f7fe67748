//! Why a Placement has the clusters that it has: for `/debug/placement`.

use std::collections::HashSet;

use parking_lot::RwLock;
use placement::{Candidate, Filter, Input, Outcome, schedule};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::plan::names;
use super::world::{Known, World};
use crate::wakes::Key;

/// A run of its own, of which nothing is written. None if there is no such Placement.
pub fn explain(world: &RwLock<World>, key: &Key, now: OffsetDateTime) -> Option<Value> {
    let world = world.read();
    let known = world.placement(key)?;
    if let Some(why) = &known.unreadable {
        let condition = json!({"type": "PlacementMisconfigured", "status": "True", "message": why});
        return Some(document(known, &json!([condition]), &json!([])));
    }
    let (snapshot, document) = (world.snapshot(known), document(known, &Value::Null, &Value::Null));
    // It goes on meanwhile.
    drop(world);
    Some(snapshot.with_input(now, |input| of_run(document, input)))
}

fn of_run(mut document: Value, input: &Input<'_>) -> Value {
    let outcome = schedule(input);
    let conditions: Value = outcome
        .conditions
        .iter()
        .map(|condition| {
            let status = if condition.is_true { "True" } else { "False" };
            json!({"type": condition.kind, "status": status, "reason": condition.reason, "message": condition.message})
        })
        .collect();
    let chosen: HashSet<&str> = outcome.chosen.iter().copied().collect();
    let candidates = outcome.candidates.iter().enumerate().map(|(index, candidate)| {
        let mut told = of_candidate(&outcome, index, candidate);
        told["isChosen"] = chosen.contains(candidate.cluster.name.as_str()).into();
        told
    });
    document["candidates"] = candidates.collect();
    document["conditions"] = conditions;
    document["groups"] = outcome.groups.as_deref().map(|groups| names(groups).collect()).unwrap_or_default();
    document["warnings"] = outcome.warnings.iter().map(|warning| warning.message.clone()).collect();
    document["runsAgainAt"] = outcome.requeue_at.and_then(|moment| moment.format(&Rfc3339).ok()).into();
    document
}

fn document(known: &Known, conditions: &Value, candidates: &Value) -> Value {
    json!({
        "namespace": known.key.0,
        "name": known.key.1,
        "generation": known.prepared.generation,
        "isAtRest": known.prepared.is_at_rest,
        "conditions": conditions,
        "candidates": candidates,
    })
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
