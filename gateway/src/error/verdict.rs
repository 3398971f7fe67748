//! What every failure means beside its text: whose it is, who hears of it, and when to try again.
//!
//! One table without a catch-all: a new failure does not compile before somebody has decided.

use std::sync::Arc;

use auth::{AuthenticationError, AuthorizationError, User};

use super::{Cause, Error};
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
    /// Seconds. Only for failures that come before anything was sent to a member: client-go repeats
    /// any request.
    pub retry_after: Option<u32>,
}

/// What is written down of a failure after it was answered.
#[derive(Debug)]
pub struct Refusal {
    pub side: Side,
    pub forbidden: Option<Forbidden>,
}

/// Who was refused, and why.
#[derive(Debug)]
pub struct Forbidden {
    pub user: Arc<User>,
    pub reason: String,
}

// === impl Side ===

impl Side {
    /// As logs, audit events and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Tunnel => "tunnel",
            Self::Member => "member",
        }
    }

    /// As `reason` of an entry in `status.details.causes`. A caller is no hop.
    pub fn hop(self) -> Option<&'static str> {
        match self {
            Self::Caller => None,
            Self::Hub => Some("Hub"),
            Self::Gateway => Some("Gateway"),
            Self::Tunnel => Some("Tunnel"),
            Self::Member => Some("Member"),
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
    pub fn refusal(&self) -> Refusal {
        let forbidden = match self {
            Self::Authentication(AuthenticationError::Forbidden { user, reason, .. })
            | Self::Authorization(AuthorizationError::Forbidden { user, reason, .. }) => {
                Some(Forbidden { user: Arc::clone(user), reason: reason.clone() })
            }
            _ => None,
        };
        Refusal { side: self.verdict().side, forbidden }
    }

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
            | Self::Status(_) => Side::Caller.quietly(),
            Self::Hub(failure, _) => of_hub(failure),
            Self::ClustersUnknown => Side::Hub.quietly().again(),
            Self::TooMany(_) => Side::Gateway.quietly().again(),
            // Its body may have been read.
            Self::HeldTooMuch => Side::Gateway.quietly(),
            Self::Cluster(failure) => of_cluster(&failure.cause),
        }
    }
}

fn of_cluster(cause: &Cause) -> Verdict {
    match cause {
        Cause::Absent => Side::Caller.quietly(),
        Cause::Late | Cause::Unanswered => Side::Hub.quietly().again(),
        Cause::Invalid(_) => Side::Hub.operational(),
        Cause::Unconvertible(_) => Side::Hub.quietly(),
        Cause::Loop | Cause::NotIssued(_) => Side::Gateway.operational(),
        Cause::Send(error) => of_sending(error),
        Cause::UpgradeBroken(_)
        | Cause::NoUpgrade(_)
        | Cause::Unexpected(_)
        | Cause::CredentialRejected
        | Cause::IssuedRejected
        | Cause::Redirected => Side::Member.operational(),
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
    let side = if error.is_of_the_tunnel() { Side::Tunnel } else { Side::Member };
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
