//! What is measured: one kind of load, the targets that take it, the figures it gives and the goals they are held against.

use std::time::Duration;

use anyhow::Result;

use crate::figure::{Figure, Goal, Sample, Target};
use crate::ground::Ground;

/// One row of the report.
pub trait Scenario {
    /// For the command line: `get-h2`.
    fn name(&self) -> &'static str;

    /// The heading in the report.
    fn title(&self) -> &'static str;

    /// How it is measured, for the report: load, connections, what is counted. One paragraph.
    fn method(&self) -> &'static str;

    fn figures(&self) -> &'static [Figure];

    fn goals(&self) -> &'static [Goal];

    /// Starts what it needs. Called once, before the first round; what it returns is dropped after the last.
    fn contenders(&self, ground: &mut Ground) -> Result<Vec<Contender>>;
}

/// A target in a scenario.
pub struct Contender {
    pub target: Target,
    /// Or why it is not measured.
    pub load: Result<Box<dyn Load>, String>,
}

/// Load on one target, to be put on it once a round.
pub trait Load {
    /// Measures for about `time`, which a load of a fixed amount may leave aside.
    fn measure(&mut self, time: Duration) -> Result<Sample>;
}

/// All, in the order of the report.
pub fn all() -> Vec<Box<dyn Scenario>> {
    vec![]
}

// === impl Contender ===

impl Contender {
    pub fn ready(target: Target, load: impl Load + 'static) -> Self {
        Self { target, load: Ok(Box::new(load)) }
    }

    pub fn skipped(target: Target, reason: impl Into<String>) -> Self {
        Self { target, load: Err(reason.into()) }
    }

    /// What cannot be started is skipped with the reason; the others go on.
    pub fn new<L: Load + 'static>(target: Target, load: Result<L>) -> Self {
        match load {
            Ok(load) => Self::ready(target, load),
            Err(reason) => Self::skipped(target, format!("{reason:#}")),
        }
    }
}

impl<F: FnMut(Duration) -> Result<Sample>> Load for F {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        self(time)
    }
}
