//! Why a pass over a work did not come to its end.

use std::time::Duration;

use super::member::MemberError;
use crate::parts::hub::CallError;
use crate::term::NotLeading;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Member(MemberError),
    #[error(transparent)]
    Hub(#[from] CallError),
    #[error("AppliedManifestWork was defined just now: it is served in a moment")]
    Defined,
    #[error(
        "AppliedManifestWork {name} is kept by {agent:?}: annotate the cluster with delivery: adopt to take it over"
    )]
    Foreign { name: String, agent: String },
    #[error("an object of the member cannot be read: {0}")]
    Unreadable(String),
}

/// After a definition, until it is served.
const MOMENT: Duration = Duration::from_millis(300);
/// Until somebody may have granted what is missing.
const GRANTED: Duration = Duration::from_mins(1);

// === impl Failure ===

impl Failure {
    /// The cluster did not answer, and how long at least it is to be left alone.
    pub fn away(&self) -> Option<Duration> {
        match self {
            Self::Member(MemberError::Away(failure) | MemberError::Late(failure)) => {
                Some(failure.retry_after.unwrap_or_default())
            }
            _ => None,
        }
    }

    /// The hub lets us not through, or the member's credential may not do what any work needs.
    pub fn forbidden(&self) -> Option<String> {
        match self {
            Self::Member(MemberError::Closed(failure)) => Some(format!("forbidden: {failure}")),
            Self::Member(error) if error.is_forbidden() => Some(format!("forbidden: {error}")),
            _ => None,
        }
    }

    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Member(error) => error.is_conflict(),
            Self::Hub(error) => error.is_conflict(),
            _ => false,
        }
    }

    /// Another replica works on it now.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Member(MemberError::NotLeading(NotLeading)) | Self::Hub(CallError::NotLeading(_)))
    }

    /// When it is tried again, if that is not for the back-off to say.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Defined => Some(MOMENT),
            Self::Foreign { .. } => Some(GRANTED),
            _ if self.forbidden().is_some() => Some(GRANTED),
            _ => None,
        }
    }
}

impl From<MemberError> for Failure {
    fn from(error: MemberError) -> Self {
        Self::Member(error)
    }
}
