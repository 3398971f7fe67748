//! Conditions of a Placement, with upstream's reasons and messages to the letter.

use serde_json::Value;

use crate::prepared::Prepared;

/// Type of the condition that says whether enough clusters were found.
pub const SATISFIED: &str = "PlacementSatisfied";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its `type`.
    pub kind: &'static str,
    pub is_true: bool,
    pub reason: &'static str,
    pub message: String,
}

/// Longest message, in bytes (`metav1.Condition`).
const LONGEST: usize = 32_768;

/// Why a Placement cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misconfigured {
    /// The filter that found it; empty if none did.
    pub plugin: &'static str,
    pub why: String,
}

/// The results of a run on which `PlacementSatisfied` depends.
#[derive(Debug, Clone, Copy)]
pub struct Counts<'a> {
    /// Sets that the Placement names.
    pub asked: &'a [String],
    /// Those of them that are bound; all bound sets if it names none.
    pub eligible: &'a [&'a str],
    pub bindings: usize,
    pub candidates: usize,
    pub chosen: usize,
    pub unscheduled: usize,
}

/// `PlacementMisconfigured`. If it is true, the message says which decisions are kept, if that is
/// known; if it is false, which fields are ignored.
pub fn misconfigured(
    found: Option<&Misconfigured>,
    placement: &Prepared,
    decided_generation: Option<i64>,
) -> Condition {
    let (reason, mut message) = match found {
        Some(Misconfigured { plugin, why }) => ("Misconfigured", format!("{plugin}:{why}")),
        None => ("Succeedconfigured", "Placement configurations check pass".to_owned()),
    };
    let note = match (found, decided_generation) {
        (Some(_), Some(generation)) => format!("; the decisions of generation {generation} are kept"),
        (None, _) if !placement.ignored.is_empty() => format!("; ignored: {}", placement.ignored.join(", ")),
        _ => String::new(),
    };
    message.push_str(&note);
    Condition { kind: "PlacementMisconfigured", is_true: found.is_some(), reason, message: cut(message) }
}

/// `PlacementSatisfied`.
pub fn satisfied(counts: &Counts<'_>) -> Condition {
    let Counts { asked, eligible, bindings, candidates, chosen, unscheduled } = counts;
    let (reason, message) = if *bindings == 0 {
        let message = "No valid ManagedClusterSetBindings found in placement namespace";
        ("NoManagedClusterSetBindings", message.to_owned())
    } else if eligible.is_empty() {
        let message = format!("None of ManagedClusterSets [{}] is bound to placement namespace", asked.join(","));
        ("NoIntersection", message)
    } else if *candidates == 0 {
        let message = format!("All ManagedClusterSets [{}] have no member ManagedCluster", eligible.join(","));
        ("AllManagedClusterSetsEmpty", message)
    } else if *chosen == 0 {
        ("NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate".to_owned())
    } else if *unscheduled == 0 {
        ("AllDecisionsScheduled", "All cluster decisions scheduled".to_owned())
    } else {
        ("NotAllDecisionsScheduled", format!("{unscheduled} cluster decisions unscheduled"))
    };
    Condition { kind: SATISFIED, is_true: reason == "AllDecisionsScheduled", reason, message: cut(message) }
}

/// The generation of the Placement that its decisions follow, by its status, if we wrote them.
pub fn decided_generation(status: &Value) -> Option<i64> {
    let mut conditions = status["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == SATISFIED)?["observedGeneration"].as_i64()
}

/// The hub refuses a longer one, and with it the whole status.
fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(LONGEST));
    message
}
