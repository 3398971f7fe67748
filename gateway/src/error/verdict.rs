//! What every failure means beside its text: whose it is, who hears of it, and when to try again.
//!
//! One table without a catch-all: a new failure does not compile before somebody has decided.

use auth::{AuthenticationError, AuthorizationError};

use super::Error;
use crate::hub::HubFailure;
use crate::upstream::{ConnectError, SendError};

/// Where a request failed, seen from the gateway: who has to act, if anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The request itself, its rights, or its client.
    Caller,
    /// The hub's API server, or what is registered there.
    Hub,
    /// The gateway's own limits and rules.
    Gateway,
    /// What leads to a member that is not dialled: tunnel-servers and agents.
    Tunnel,
    /// The member, what leads straight to it, or its credential.
    Member,
}

/// See [`Error::verdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub side: Side,
    /// The operator hears of it in the log: it is not the caller's doing.
    pub is_operational: bool,
    /// Seconds. Only for failures that come before anything was sent to a member: client-go repeats any request.
    pub retry_after: Option<u32>,
}

// === impl Side ===

impl Side {
    /// As logs and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Tunnel => "tunnel",
            Self::Member => "member",
        }
    }

    const fn quietly(self) -> Verdict {
        Verdict { side: self, is_operational: false, retry_after: None }
    }

    const fn operational(self) -> Verdict {
        Verdict { side: self, is_operational: true, retry_after: None }
    }
}

// === impl Verdict ===

impl Verdict {
    const SHORTLY: u32 = 1;

    const fn again(mut self) -> Self {
        self.retry_after = Some(Self::SHORTLY);
        self
    }
}

// === impl Error ===

impl Error {
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Authentication(error) => match error {
                AuthenticationError::Unauthorized { .. }
                | AuthenticationError::Forbidden { .. }
                | AuthenticationError::BadRequest(_) => Side::Caller.quietly(),
                AuthenticationError::Review(_) => Side::Hub.operational(),
                AuthenticationError::Busy => Side::Gateway.quietly().again(),
            },
            Self::Authorization(error) => match error {
                AuthorizationError::Forbidden { .. } => Side::Caller.quietly(),
                AuthorizationError::Review(_) => Side::Hub.operational(),
                AuthorizationError::Busy => Side::Gateway.quietly().again(),
            },
            Self::BadRequest(_)
            | Self::BadPath(_)
            | Self::TooManyHeaders
            | Self::UnfitHead(_)
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::NotAcceptable
            | Self::List(_)
            | Self::NoSuchObject(_)
            | Self::NoSuchCluster(_)
            | Self::Status(_) => Side::Caller.quietly(),
            Self::Hub(failure, _) => of_hub(failure),
            Self::ClustersUnknown | Self::ClusterLate(_) | Self::ClusterUnanswered(_) => Side::Hub.quietly().again(),
            Self::InvalidCluster { .. } => Side::Hub.operational(),
            Self::Unconvertible { .. } => Side::Hub.quietly(),
            Self::TooMany(_) => Side::Gateway.quietly().again(),
            Self::Loop(_) | Self::NotIssued { .. } => Side::Gateway.operational(),
            Self::Upstream { error, .. } => of_sending(error),
            Self::UpgradeBroken { .. }
            | Self::NoUpgrade { .. }
            | Self::Unasked { .. }
            | Self::CredentialRejected(_)
            | Self::IssuedRejected(_)
            | Self::Redirected(_) => Side::Member.operational(),
        }
    }
}

/// What else the hub refuses is for the caller's parameters.
fn of_hub(failure: &HubFailure) -> Verdict {
    if failure.is_operational() { Side::Hub.operational() } else { Side::Caller.quietly() }
}

fn of_sending(error: &SendError) -> Verdict {
    match error {
        SendError::Connect(error) => of_connecting(error),
        SendError::Exhausted(_) | SendError::Refused => Side::Member.operational().again(),
        SendError::Broken(_) | SendError::UnfitAnswer(_) => Side::Member.operational(),
        SendError::Unfit(_) => Side::Caller.quietly(),
        SendError::ClientGone(_) => Side::Caller.operational(),
    }
}

fn of_connecting(error: &ConnectError) -> Verdict {
    let side = if error.is_of_the_member() { Side::Member } else { Side::Tunnel };
    let verdict = side.operational();
    if error.is_momentary() { verdict.again() } else { verdict }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::tests::{every_kind, through_the_tunnel};

    #[test]
    fn no_failure_of_the_caller_invites_a_repetition() {
        for error in every_kind() {
            let verdict = error.verdict();
            assert!(verdict.side != Side::Caller || verdict.retry_after.is_none(), "{error:?}");
        }
    }

    #[test]
    fn the_tunnels_failures_are_told_from_the_members() {
        let sides: Vec<_> = through_the_tunnel().map(|error| of_connecting(&error).side).collect();
        assert!(sides.contains(&Side::Tunnel) && sides.contains(&Side::Member), "{sides:?}");
        assert!(sides.iter().all(|side| matches!(side, Side::Tunnel | Side::Member)));
    }
}
