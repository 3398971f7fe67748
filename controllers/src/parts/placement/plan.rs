//! Computes the writes that a Placement needs, and leaves out what the hub has already.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use parking_lot::RwLock;
use placement::conditions::decided_generation;
use placement::explain::of_unreadable;
use placement::objects::GROUP;
use placement::slices::{self, DecisionObject, GROUP_NAME_LABEL};
use placement::{Group, Input, Outcome, schedule};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::status::{self, Report};
use super::world::{DecisionOnHub, ObservedPlacement, World};
use crate::wakes::Key;

/// The next step for a Placement.
pub enum Step {
    /// No step until something changes.
    Rest,
    /// Another controller writes its decisions or its status.
    LeaveAlone {
        manager: String,
        until: OffsetDateTime,
    },
    /// People edited its decisions or its status repeatedly, so the edits are reverted later.
    Wait {
        until: OffsetDateTime,
    },
    Do(Box<Plan>),
}

pub struct Plan {
    /// The Placement's count of input changes at the run.
    pub inputs: u64,
    pub changes: Vec<Change>,
    pub surplus: Vec<Surplus>,
    /// End of a hold, if the decisions keep clusters because of it.
    pub held: Option<OffsetDateTime>,
    /// The status fields that differ, and the version of the object that they were computed from.
    pub status: Option<(String, Value)>,
    /// Number of clusters that the decisions name afterwards.
    pub clusters: usize,
    pub is_misconfigured: bool,
    /// The warning for events.
    pub warning: String,
    /// Message of the event `ScoreUpdate`.
    pub scores: String,
    /// When the result may change without a change of input.
    pub again: Option<OffsetDateTime>,
    pub took: Duration,
    /// Steps of the expressions.
    pub steps: u64,
}

/// A write of a decision.
pub struct Change {
    pub name: String,
    /// The version that was compared; none: the decision does not exist.
    pub version: Option<String>,
    /// The clusters of that version.
    pub before: Vec<String>,
    /// Labels and owners to send, if they differ.
    pub metadata: Option<Value>,
    /// Clusters to send, if they differ.
    pub list: Option<Vec<String>>,
}

/// A decision with the Placement's label that is not one of its own.
pub struct Surplus {
    pub name: String,
    pub uid: String,
    pub version: String,
}

/// The next step for a Placement at `now`; `now_text` is the same time in RFC 3339.
pub fn step(world: &World, key: &Key, now: OffsetDateTime, now_text: &str) -> Step {
    let Some(known) = world.placement(key).filter(|known| !known.prepared.is_at_rest) else { return Step::Rest };
    if let Some((manager, until)) = known.foreign_writes.other(now) {
        return Step::LeaveAlone { manager: manager.to_owned(), until };
    }
    let plan = match &known.unreadable {
        Some(why) => unreadable(world, known, why, now_text),
        None => world.with_input(known, now, |input| plan(world, known, &Run::of(input, known.inputs), now_text)),
    };
    judged(known, plan, now)
}

/// Like [`step`], for a run that takes long: it does not lock the world.
pub fn step_aside(world: &RwLock<World>, key: &Key, now: OffsetDateTime, now_text: &str) -> Step {
    let is_run = |known: &&ObservedPlacement| !known.prepared.is_at_rest && known.unreadable.is_none();
    let begin = |world: &World| Some(world.snapshot(world.placement(key).filter(is_run)?));
    let Some(snapshot) = begin(&world.read()) else { return step(&world.read(), key, now, now_text) };
    snapshot.with_input(now, |input| {
        let run = Run::of(input, snapshot.inputs);
        let world = world.read();
        let Some(known) = world.placement(key).filter(|known| snapshot.is_of(known)) else { return Step::Rest };
        if let Some((manager, until)) = known.foreign_writes.other(now) {
            return Step::LeaveAlone { manager: manager.to_owned(), until };
        }
        let plan = plan(&world, known, &run, now_text);
        judged(known, plan, now)
    })
}

fn judged(known: &ObservedPlacement, plan: Plan, now: OffsetDateTime) -> Step {
    match known.foreign_writes.wait(now) {
        Some(until) if plan.writes_decisions() || plan.status.is_some() => Step::Wait { until },
        _ => Step::Do(Box::new(plan)),
    }
}

/// A run and its input.
struct Run<'r> {
    input: &'r Input<'r>,
    /// The Placement's count of input changes at the run.
    inputs: u64,
    outcome: Outcome<'r>,
    took: Duration,
}

// === impl Run ===

impl<'r> Run<'r> {
    fn of(input: &'r Input<'r>, inputs: u64) -> Self {
        let began = Instant::now();
        let outcome = schedule(input);
        Self { input, inputs, outcome, took: began.elapsed() }
    }
}

/// The plan of a Placement that cannot be read: it keeps its decisions, and its status states the
/// reason.
fn unreadable(world: &World, known: &ObservedPlacement, why: &str, now: &str) -> Plan {
    let condition = of_unreadable(&known.prepared, why, decided_generation(&known.status));
    let report = Report { generation: known.prepared.generation, conditions: &[condition], decided: None };
    let status = differing(known, &report, now);
    Plan { status, clusters: kept(world, known), is_misconfigured: true, ..Plan::empty(known) }
}

/// Number of clusters that its decisions name now.
fn kept(world: &World, known: &ObservedPlacement) -> usize {
    world.labelled(&known.key).filter_map(|name| held(world, known, name)).map(|held| held.clusters.len()).sum()
}

fn plan(world: &World, known: &ObservedPlacement, run: &Run<'_>, now: &str) -> Plan {
    let Run { input, outcome, took, .. } = run;
    let warnings = outcome.warnings.iter().map(|warning| format!("{} in plugin {}", warning.message, warning.plugin));
    let mut plan = Plan {
        is_misconfigured: outcome.groups.is_none(),
        warning: warnings.collect::<Vec<_>>().join("; "),
        scores: outcome.score_message(),
        again: earliest(outcome.requeue_at, outcome.first_expiry(input)),
        took: *took,
        steps: outcome.steps,
        inputs: run.inputs,
        ..Plan::empty(known)
    };
    let mut report = Report { generation: known.prepared.generation, conditions: &outcome.conditions, decided: None };
    if let Some(groups) = &outcome.groups {
        let mut groups = groups.clone();
        if let Some(until) = world.holds(&known.key.0, input.now)
            && keep(&mut groups, world, known, |cluster| {
                // After a change of input the cluster may be back. The Placement runs again in any
                // case.
                known.inputs != run.inputs || world.has_left(known, cluster, input.now)
            })
        {
            plan.held = Some(until);
            plan.again = earliest(plan.again, plan.held);
        }
        let objects = slices::objects(&known.key.1, &groups);
        plan.clusters = groups.iter().map(|group| group.clusters.len()).sum();
        plan.decide(world, known, &objects);
        report.decided = Some((plan.clusters, slices::statuses(&groups, &objects)));
        plan.status = differing(known, &report, now);
    } else {
        plan.clusters = kept(world, known);
        plan.status = differing(known, &report, now);
    }
    plan
}

/// During a removal hold, adds to `groups` the decided clusters that `has_left` by a removal: each
/// to the first group with the name of its decision's group, or else to the last group. Adds no
/// more than the Placement asks for, so that a smaller number takes effect at once. True if it
/// added any.
fn keep<'w>(
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

fn held<'a>(world: &'a World, known: &ObservedPlacement, name: &str) -> Option<&'a DecisionOnHub> {
    world.held(&(known.key.0.clone(), name.to_owned()))
}

fn differing(known: &ObservedPlacement, report: &Report<'_>, now: &str) -> Option<(String, Value)> {
    let difference = status::difference(&known.status, report, now)?;
    Some((known.version.clone(), difference))
}

fn earliest(a: Option<OffsetDateTime>, b: Option<OffsetDateTime>) -> Option<OffsetDateTime> {
    a.into_iter().chain(b).min()
}

// === impl Plan ===

impl Plan {
    fn empty(known: &ObservedPlacement) -> Self {
        Self {
            inputs: known.inputs,
            changes: Vec::new(),
            surplus: Vec::new(),
            held: None,
            status: None,
            clusters: 0,
            is_misconfigured: false,
            warning: String::new(),
            scores: String::new(),
            again: None,
            took: Duration::ZERO,
            steps: 0,
        }
    }

    pub fn writes_decisions(&self) -> bool {
        !self.changes.is_empty() || !self.surplus.is_empty()
    }

    fn decide(&mut self, world: &World, known: &ObservedPlacement, objects: &[DecisionObject<'_>]) {
        self.changes =
            objects.iter().filter_map(|object| change(held(world, known, &object.name), known, object)).collect();
        let own: HashSet<&str> = objects.iter().map(|object| object.name.as_str()).collect();
        for name in world.labelled(&known.key).filter(|name| !own.contains(name.as_str())) {
            if let Some(DecisionOnHub { uid, version, .. }) = held(world, known, name) {
                self.surplus.push(Surplus { name: name.clone(), uid: uid.clone(), version: version.clone() });
            }
        }
    }
}

/// None if the decision is as it should be.
fn change(held: Option<&DecisionOnHub>, known: &ObservedPlacement, object: &DecisionObject<'_>) -> Option<Change> {
    let name = object.name.clone();
    let labels: BTreeMap<String, String> =
        object.labels(&known.key.1).into_iter().map(|(label, value)| (label.to_owned(), value)).collect();
    let clusters = || object.clusters.iter().map(|cluster| (*cluster).to_owned()).collect::<Vec<_>>();
    let owner = owner(known);
    let Some(held) = held else {
        let list = (!object.clusters.is_empty()).then(clusters);
        let metadata = Some(json!({"labels": labels, "ownerReferences": [owner]}));
        return Some(Change { name, version: None, before: Vec::new(), metadata, list });
    };
    let is_listed = held.is_plain && held.clusters.iter().map(String::as_str).eq(object.clusters.iter().copied());
    let is_labelled = held.labels == labels && held.owners.contains(&owner);
    let change = Change {
        name,
        version: Some(held.version.clone()),
        before: held.clusters.clone(),
        metadata: (!is_labelled).then(|| metadata(held, &labels, &owner)),
        list: (!is_listed).then(clusters),
    };
    (change.metadata.is_some() || change.list.is_some()).then_some(change)
}

/// Removes labels that are not ours, as upstream does. Owners that are no controllers stay.
fn metadata(held: &DecisionOnHub, labels: &BTreeMap<String, String>, owner: &Value) -> Value {
    let mut all: BTreeMap<&str, Value> = held.labels.keys().map(|label| (label.as_str(), Value::Null)).collect();
    all.extend(labels.iter().map(|(label, value)| (label.as_str(), value.clone().into())));
    let others = held.owners.iter().filter(|other| other["controller"] != true && other["uid"] != owner["uid"]);
    let owners: Vec<Value> = others.cloned().chain([owner.clone()]).collect();
    json!({"labels": all, "ownerReferences": owners})
}

fn owner(known: &ObservedPlacement) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1beta1"),
        "kind": "Placement",
        "name": known.key.1,
        "uid": known.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

#[cfg(test)]
mod tests;
