//! The health of a member's control plane according to probes, and the time of the next probe.
//!
//! One failure says little: if a profile changed with each failure, all its readers would move work
//! back and forth. And a gateway that is away says nothing about members: profiles must not all
//! report a failure and withdraw it a moment later.

mod record;

use std::time::Duration;

pub use self::record::Record;

/// Time between two probes of a healthy member.
const EVERY: Duration = Duration::from_mins(1);
/// Time from a first failure to the probe that confirms it.
const CONFIRM: Duration = Duration::from_secs(5);
/// Longest time between two probes of a member that is away.
const LONGEST: Duration = Duration::from_mins(5);
/// Failures in a row that confirm a failure.
const CONFIRMED: u32 = 2;
/// Probes in a row that did not reach the member, after which its state is unknown.
const BLIND: u32 = 5;

/// The condition's `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    True,
    False(Cause),
    Unknown,
}

/// Why a control plane is not healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Unreachable,
    /// Its API server answers, and says that it is not ready.
    NotReady,
}

/// The health of the control plane, as its profile reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub state: HealthStatus,
    /// In fixed words: members choose none of it, and the same failure has the same text.
    pub message: String,
}

// === impl HealthStatus ===

impl HealthStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False(_) => "False",
            Self::Unknown => "Unknown",
        }
    }
}

// === impl Health ===

impl Health {
    pub(super) fn not_probed() -> Self {
        Self { state: HealthStatus::Unknown, message: "the member was not probed yet".to_owned() }
    }

    /// The condition's `reason`.
    pub fn reason(&self) -> &'static str {
        match self.state {
            HealthStatus::True => "Healthy",
            HealthStatus::False(Cause::Unreachable) => "Unreachable",
            HealthStatus::False(Cause::NotReady) => "NotReady",
            HealthStatus::Unknown => "NotProbed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn unreachable() -> Outcome {
        Outcome::Unreachable("no answer".to_owned())
    }

    fn taken(outcomes: impl IntoIterator<Item = Outcome>) -> (Record, Vec<u64>) {
        let mut record = Record::default();
        let waits = outcomes.into_iter().map(|outcome| record.take(outcome).as_secs()).collect();
        (record, waits)
    }

    fn said(record: &Record) -> Option<(&'static str, &'static str)> {
        record.health().map(|health| (health.state.as_str(), health.reason()))
    }

    #[test]
    fn a_member_is_away_when_two_probes_say_so_and_back_when_one_does() {
        assert_eq!(said(&taken([]).0), None);
        let well = taken([Outcome::Healthy]).0;
        assert!(well.is_well() && said(&well) == Some(("True", "Healthy")));
        let (once, waits) = taken([Outcome::Healthy, unreachable()]);
        assert_eq!((said(&once), waits), (Some(("True", "Healthy")), vec![60, 5]));
        assert!(!once.is_well());
        let (twice, _) = taken([Outcome::Healthy, unreachable(), unreachable()]);
        assert_eq!(said(&twice), Some(("False", "Unreachable")));
        let (back, _) = taken([Outcome::Healthy, unreachable(), Outcome::Healthy, unreachable()]);
        assert_eq!(said(&back), Some(("True", "Healthy")), "not in a row");
        let (sick, _) = taken([Outcome::NotReady, Outcome::NotReady]);
        assert_eq!(said(&sick), Some(("False", "NotReady")));
    }

    #[test]
    fn a_member_that_is_away_is_asked_less_and_less() {
        let (_, waits) = taken(std::iter::repeat_with(unreachable).take(40));
        assert_eq!(waits[..6], [5, 60, 120, 240, 300, 300]);
        assert_eq!(waits[39], 300);
    }

    #[test]
    fn a_gateway_that_is_away_for_a_moment_changes_nothing() {
        let blind = || Outcome::NotProbed("the gateway is away".to_owned());
        let (record, waits) = taken([Outcome::Healthy, blind(), blind(), blind(), blind()]);
        assert_eq!((said(&record), waits), (Some(("True", "Healthy")), vec![60, 5, 10, 20, 40]));
        let (record, _) = taken([Outcome::Healthy, blind(), blind(), blind(), blind(), blind()]);
        assert_eq!(said(&record), Some(("Unknown", "NotProbed")));
        assert_eq!(record.health().unwrap().message, "the gateway is away");
    }
}
