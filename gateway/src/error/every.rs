//! Failures of a read of all clusters at once.

use api::side::Side;
use api::status::{Reason, Status};
use http::StatusCode;

#[derive(Debug, thiserror::Error)]
pub enum EveryFailure {
    /// The hub's reviews took longer than this, in seconds.
    #[error("the reviews of which clusters you may read took longer than {0} s")]
    LateReviews(u64),
    /// No member gave a usable response, and not all answered that they have no such object.
    #[error("{text}")]
    NoneServed {
        /// The side where the members failed.
        side: Side,
        /// Names them with their reasons.
        text: String,
    },
}

// === impl EveryFailure ===

impl EveryFailure {
    pub(super) fn side(&self) -> Side {
        match self {
            Self::LateReviews(_) => Side::Hub,
            Self::NoneServed { side, .. } => *side,
        }
    }
}

impl From<EveryFailure> for Status {
    fn from(failure: EveryFailure) -> Self {
        let (code, reason) = match failure {
            EveryFailure::LateReviews(_) => (StatusCode::GATEWAY_TIMEOUT, Reason::Timeout),
            EveryFailure::NoneServed { .. } => (StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable),
        };
        Self::new(code, reason, failure.to_string())
    }
}
