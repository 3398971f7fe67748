//! The result of measuring a scenario.

use std::time::Duration;

use crate::contender::Missing;
use crate::figure::{self, Sample, Target};
use crate::scenario::Scenario;

/// Number and length of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub rounds: usize,
    /// Length of one measurement.
    pub time: Duration,
    /// Only tried: no warm-up.
    pub smoke: bool,
}

/// Results of a scenario.
pub struct Outcome {
    pub scenario: Scenario,
    /// In the order of the scenario's contenders.
    pub targets: Vec<Measured>,
    /// Why there are none.
    pub missing: Option<Missing>,
}

/// A target's samples.
#[derive(Debug)]
pub struct Measured {
    pub target: Target,
    /// A sample for each round, from the first on.
    pub samples: Vec<Sample>,
    /// Why there are none, or no more.
    pub missing: Option<Missing>,
}

// === impl Outcome ===

impl Outcome {
    pub fn target(&self, target: Target) -> Option<&Measured> {
        self.targets.iter().find(|measured| measured.target == target)
    }

    /// Whether something failed that is no peer of ours.
    pub fn is_bad(&self) -> bool {
        let failed = |missing: &Option<Missing>| matches!(missing, Some(Missing::Failed(_)));
        failed(&self.missing)
            || self.targets.iter().any(|measured| !figure::is_peer(measured.target) && failed(&measured.missing))
    }
}
