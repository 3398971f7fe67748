//! A Placement that is ready to be scheduled: selectors and expressions are compiled once, not for
//! every run.
//!
//! Mistakes are kept next to the rest: upstream finds them only during a run, and some not at all
//! if there is no cluster to try them on.

mod groups;
mod predicates;
mod weights;

pub use self::groups::{DecisionGroup, GroupRule, Size};
pub use self::predicates::{Predicate, VARIABLES};
pub use self::weights::{Prioritizer, Weighted};

use serde::Deserialize as _;
use serde_json::Value;

use crate::objects::{Metadata, Placement, Toleration};

/// Annotation of a Placement whose scheduling is turned off: `true`.
pub const DISABLE_ANNOTATION: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// Most tolerations: all are checked for each taint.
const TOLERATIONS: usize = 256;

#[derive(Debug)]
pub struct Prepared {
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    /// Whether it must be left as it is: it is being deleted, or its scheduling is turned off.
    pub is_at_rest: bool,
    /// Empty for all that are bound.
    pub cluster_sets: Vec<String>,
    /// `None` for all that fit.
    pub number_of_clusters: Option<usize>,
    pub predicates: Result<Vec<Predicate>, String>,
    pub tolerations: Result<Vec<Toleration>, &'static str>,
    pub prioritizers: Result<Vec<Weighted>, String>,
    pub groups: Result<GroupRule, String>,
    /// Fields that are set and ignored.
    pub ignored: Vec<&'static str>,
}

// === impl Prepared ===

impl Prepared {
    pub fn new(placement: &Placement) -> Self {
        let (metadata, spec) = (&placement.metadata, &placement.spec);
        let is_disabled = metadata.annotations.get(DISABLE_ANNOTATION).is_some_and(|value| value == "true");
        Self {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            generation: metadata.generation,
            is_at_rest: is_disabled || metadata.deletion_timestamp.is_some(),
            cluster_sets: spec.cluster_sets.clone(),
            // Upstream panics on negative numbers, which its API accepts.
            number_of_clusters: spec.number_of_clusters.map(|count| usize::try_from(count).unwrap_or(0)),
            predicates: predicates::predicates(&spec.predicates),
            tolerations: tolerations(&spec.tolerations),
            prioritizers: weights::prioritizers(&spec.prioritizer_policy),
            groups: GroupRule::compile(&spec.decision_strategy.group_strategy),
            ignored: ignored(placement),
        }
    }

    /// Whether it has expressions, which see whole clusters and all scores.
    pub fn has_expressions(&self) -> bool {
        let predicates = self.predicates.as_deref().unwrap_or_default();
        predicates.iter().any(|predicate| !predicate.expressions.is_empty())
    }

    /// Resources of the add-ons' scores that it uses.
    pub fn score_resources(&self) -> impl Iterator<Item = &str> {
        let prioritizers = self.prioritizers.as_deref().unwrap_or_default();
        prioritizers.iter().filter_map(|weighted| match &weighted.prioritizer {
            Prioritizer::AddOn { resource, .. } => Some(resource.as_str()),
            _ => None,
        })
    }
}

/// Longest name, in bytes: decisions have it as a label's value.
const LONGEST_NAME: usize = 63;

/// Parses an object, and says why it cannot be scheduled at all, if so. An object that cannot be
/// parsed, though the kind's schema let it pass, becomes a Placement with an empty spec.
pub fn read(object: &Value) -> (Prepared, Option<String>) {
    match Placement::deserialize(object) {
        Ok(placement) => {
            let is_too_long = placement.metadata.name.len() > LONGEST_NAME;
            let why =
                || format!("metadata.name has more than {LONGEST_NAME} characters, as decisions' labels may have");
            (Prepared::new(&placement), is_too_long.then(why))
        }
        Err(error) => {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
            let metadata =
                Metadata { namespace: text("namespace"), name: text("name"), generation, ..Metadata::default() };
            let mut prepared = Prepared::new(&Placement { metadata, ..Placement::default() });
            prepared.is_at_rest = is_at_rest(object);
            (prepared, Some(error.to_string()))
        }
    }
}

/// Whether a Placement must be left as it is, even if it cannot be parsed.
pub fn is_at_rest(object: &Value) -> bool {
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null() || metadata["annotations"][DISABLE_ANNOTATION] == "true"
}

/// The tolerations, unless one of them is invalid, or there are too many.
fn tolerations(tolerations: &[Toleration]) -> Result<Vec<Toleration>, &'static str> {
    if tolerations.len() > TOLERATIONS {
        return Err("There are more than 256 tolerations.");
    }
    for toleration in tolerations {
        let is_exists = toleration.operator == "Exists";
        if toleration.key.is_empty() && !is_exists {
            return Err("If the key is empty, operator must be Exists.");
        }
        if is_exists && !toleration.value.is_empty() {
            return Err("If the operator is Exists, the value should be empty.");
        }
    }
    Ok(tolerations.to_vec())
}

/// Fields of the API that upstream's scheduler does not read, if they are not the default.
fn ignored(placement: &Placement) -> Vec<&'static str> {
    let spec = &placement.spec;
    let set = [
        ("spec.spreadPolicy", !spec.spread_policy.spread_constraints.is_empty()),
        ("spec.sortBy", !matches!(spec.sort_by.as_str(), "" | "ClusterName")),
        ("spec.scoreRateLimit", !matches!(spec.score_rate_limit.as_str(), "" | "1m")),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| field).collect()
}

#[cfg(test)]
mod tests;
