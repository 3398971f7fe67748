//! The first filter: predicates, one of which must match.

use crate::cel::{Failure, Host, Meter, Program, Value};
use crate::index::Scores;
use crate::objects::ManagedCluster;
use crate::prepared::Predicate;

/// Most steps of one expression on one cluster, as many as upstream lets it cost. An expression
/// that takes more does not match.
pub const EVALUATION: u64 = 1_000_000;
/// Most steps of all predicates on all clusters in a run: about a third of a second. Each name that
/// is looked up takes one step. Upstream has no such limit, and stands still as long as it takes.
pub const RUN: u64 = 10_000_000;

/// A run of the filter, with the steps that it has left.
#[derive(Debug)]
pub struct Predicates<'a> {
    any_of: &'a [Predicate],
    scores: &'a Scores,
    left: u64,
}

/// All predicates together take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooCostly;

// === impl Predicates ===

impl<'a> Predicates<'a> {
    pub fn new(predicates: &'a [Predicate], scores: &'a Scores) -> Self {
        Self { any_of: predicates, scores, left: RUN }
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        RUN - self.left
    }

    /// Whether `cluster` passes.
    pub fn pass(&mut self, cluster: &'a ManagedCluster) -> Result<bool, TooCostly> {
        let mut has_passed = self.any_of.is_empty();
        for predicate in self.any_of {
            self.left = self.left.checked_sub(predicate.steps()).ok_or(TooCostly)?;
            has_passed = predicate.labels.matches(&cluster.labels)
                && predicate.claims.matches(&cluster.claims)
                && self.evaluate(&predicate.expressions, cluster)?;
            if has_passed {
                break;
            }
        }
        Ok(has_passed)
    }

    /// Whether each expression is true. An error is not, nor is a value other than a boolean.
    fn evaluate(&mut self, programs: &'a [Program], cluster: &'a ManagedCluster) -> Result<bool, TooCostly> {
        for program in programs {
            let steps = EVALUATION.min(self.left);
            let mut meter = Meter::new(steps);
            let answer = program.evaluate(&[Value::from(cluster.object())], self, &mut meter);
            let is_true = matches!(answer, Ok(Value::Bool(true)));
            let is_exhausted = matches!(answer, Err(Failure::Exhausted));
            self.left -= steps - meter.left();
            // By the limit of the run, that is: which expression reached it makes no difference.
            if is_exhausted && steps < EVALUATION {
                return Err(TooCostly);
            }
            if !is_true {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<'a> Host<'a> for Predicates<'a> {
    fn scores(&self, cluster: &str, resource: &str) -> Option<Vec<(&'a str, i64)>> {
        let found = self.scores.get(cluster, resource)?;
        Some(found.scores.iter().map(|item| (item.name.as_str(), item.value)).collect())
    }
}
