//! A target with the load it takes, or the reason why there is none.

use std::time::Duration;

use anyhow::Result;

use crate::figure::{Sample, Target};
use crate::tool::Absent;

/// A target in a scenario.
pub struct Contender {
    pub target: Target,
    pub load: Result<Box<dyn Load>, Missing>,
}

/// Why a target is not measured, for the report.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// A program that it needs is not here, or it cannot take this load: no fault of this run.
    Skipped(String),
    /// It should have worked.
    Failed(String),
}

/// Load on one target, to be put on it once a round.
pub trait Load {
    /// Measures for about `time`, which a load of a fixed amount may leave aside.
    fn measure(&mut self, time: Duration) -> Result<Sample>;
}

// === impl Contender ===

impl Contender {
    pub fn ready(target: Target, load: impl Load + 'static) -> Self {
        Self { target, load: Ok(Box::new(load)) }
    }

    #[cfg(test)]
    pub fn skipped(target: Target, reason: impl Into<String>) -> Self {
        Self { target, load: Err(Missing::Skipped(reason.into())) }
    }

    /// A target that cannot be started is left out with the reason; the others go on. Only an
    /// [`Absent`] program is no failure.
    pub fn new<L: Load + 'static>(target: Target, load: Result<L>) -> Self {
        match load {
            Ok(load) => Self::ready(target, load),
            Err(error) => Self { target, load: Err(Missing::of(&error)) },
        }
    }
}

// === impl Missing ===

impl Missing {
    pub fn of(error: &anyhow::Error) -> Self {
        let reason = format!("{error:#}");
        if Absent::is_cause_of(error) { Self::Skipped(reason) } else { Self::Failed(reason) }
    }
}

impl<F: FnMut(Duration) -> Result<Sample>> Load for F {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        self(time)
    }
}
