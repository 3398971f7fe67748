//! The result of a run.

use std::fmt::Write as _;

use time::OffsetDateTime;

use crate::conditions::Condition;
use crate::input::Input;
use crate::objects::ManagedCluster;

#[derive(Debug)]
pub struct Outcome<'a> {
    /// Clusters of the sets, sorted by name.
    pub candidates: Vec<Candidate<'a>>,
    pub prioritizers: Vec<Scored<'a>>,
    /// Names of the chosen clusters, best first.
    pub chosen: Vec<&'a str>,
    /// Number of requested clusters that were not found.
    pub unscheduled: usize,
    /// What decisions should say. `None` if the Placement cannot be evaluated, and keeps its
    /// existing decisions.
    pub groups: Option<Vec<Group<'a>>>,
    /// `PlacementMisconfigured` and `PlacementSatisfied`.
    pub conditions: [Condition; 2],
    /// If there are any, the event of a changed decision is a warning.
    pub warnings: Vec<Warning<'a>>,
    /// Steps that predicates took on all clusters.
    pub steps: u64,
    /// When a toleration of a decided cluster first ends: the result may differ then.
    pub requeue_at: Option<OffsetDateTime>,
}

#[derive(Debug)]
pub struct Candidate<'a> {
    pub cluster: &'a ManagedCluster,
    /// `None` if it passed all filters.
    pub filtered_by: Option<Filter>,
    /// Sum of score × weight; 0 if it was filtered.
    pub total: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    Predicate,
    TaintToleration,
}

/// A prioritizer's scores.
#[derive(Debug)]
pub struct Scored<'a> {
    pub name: &'a str,
    pub weight: i32,
    /// In the order of the candidates. `None` for a candidate without a score.
    pub scores: Vec<Option<i64>>,
}

/// Clusters of one decision group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'a> {
    /// Empty for clusters that no group of the Placement matches.
    pub name: &'a str,
    /// Sorted; at least one, unless it is the only group.
    pub clusters: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning<'a> {
    /// The prioritizer's name.
    pub plugin: &'a str,
    pub message: String,
}

/// Most characters of an event's message.
pub const MESSAGE: usize = 1_000;

// === impl Outcome ===

impl<'a> Outcome<'a> {
    /// Candidates that passed all filters, sorted by name.
    pub fn feasible(&self) -> impl Iterator<Item = &Candidate<'a>> {
        self.candidates.iter().filter(|candidate| candidate.filtered_by.is_none())
    }

    /// When the first score in use expires, of clusters that passed all filters: upstream checks it
    /// again only when something else changes.
    pub fn first_expiry(&self, input: &Input<'_>) -> Option<OffsetDateTime> {
        let scores = input.placement.score_resources().filter_map(|resource| input.scores.of(resource));
        let ends = scores.flat_map(|scores| {
            self.feasible().filter_map(|candidate| scores.get(&candidate.cluster.name)?.valid_until)
        });
        ends.filter(|end| *end >= input.now).min()
    }

    /// The message of the event `ScoreUpdate`: `name:score ` of each candidate that passed all
    /// filters, at most 1,000 characters of these; `......` for the rest.
    pub fn score_message(&self) -> String {
        let mut message = String::new();
        for candidate in self.feasible() {
            let before = message.len();
            // Writing to a string does not fail.
            let _ = write!(message, "{}:{} ", candidate.cluster.name, candidate.total);
            if message.len() > MESSAGE {
                message.truncate(before);
                message.push_str("......");
                break;
            }
        }
        message
    }
}
