//! Why an agent is refused, and when it may try again.

use std::time::Duration;

use http::StatusCode;

use crate::registry::Outcome;

/// `Retry-After` for an agent whose review has no result.
const HUB_AGAIN: Duration = Duration::from_secs(5);
/// `Retry-After` for an agent when too many wait for the hub.
const BUSY_AGAIN: Duration = Duration::from_secs(1);

/// Why a claim is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    /// For the agent: what to correct.
    pub message: String,
    /// Only for this server's log.
    pub why: String,
    pub retry_after: Option<Duration>,
}

pub(super) fn forbidden(message: String, why: String) -> Refused {
    Refused { status: StatusCode::FORBIDDEN, message, why, retry_after: None }
}

pub(in crate::agents) fn not_asked(why: String) -> Refused {
    Refused {
        status: StatusCode::SERVICE_UNAVAILABLE,
        message: "the hub could not review this agent; retry".to_owned(),
        why,
        retry_after: Some(HUB_AGAIN),
    }
}

pub(super) fn busy(why: String) -> Refused {
    Refused {
        status: StatusCode::TOO_MANY_REQUESTS,
        message: "too many agents are waiting for the hub's review; retry".to_owned(),
        why,
        retry_after: Some(BUSY_AGAIN),
    }
}

// === impl Refused ===

impl Refused {
    /// Whether the claim is known to be invalid, rather than not known to be valid.
    pub fn is_verdict(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    pub fn outcome(&self) -> Outcome {
        match self.status {
            StatusCode::UNAUTHORIZED => Outcome::Unauthenticated,
            StatusCode::FORBIDDEN => Outcome::Forbidden,
            _ => Outcome::Hub,
        }
    }
}
