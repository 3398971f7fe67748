//! Why work on a `ManagedServiceAccount` failed.

use register::managed_service_account::{Judgement, Refusal};

use super::member::MemberError;
use super::objects::HubError;

/// Tries after which a missing CA certificate, or an error of the member, no longer counts as
/// passing.
const PATIENCE: u32 = 5;

/// The account is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Unreadable(register::Refused),
    #[error("its namespace is not named after a cluster")]
    NoCluster,
    #[error("the Secret belongs to an earlier ManagedServiceAccount of that name: the hub has yet to delete it")]
    Predecessor,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Member(#[from] MemberError),
    #[error(transparent)]
    Hub(#[from] HubError),
}

// === impl Failure ===

impl Failure {
    /// Whether the condition reports it, because a person must correct something. A cluster that is
    /// away needs no correction. `failures`: number of failed tries before this one.
    pub fn is_reported(&self, failures: u32) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Member(error) => match error {
                MemberError::Refused(_) | MemberError::Forbidden(_) | MemberError::NotFound(_) => true,
                MemberError::NoAuthority(_) | MemberError::Broken(_) => failures >= PATIENCE,
                MemberError::NotRegistered(_) | MemberError::Away(_) | MemberError::NotLeading(_) => false,
            },
            // For example a quota, or a policy.
            Self::Hub(HubError::Call(_, error)) => matches!(error.code(), Some(400 | 403 | 422)),
            Self::Unreadable(_) | Self::NoCluster | Self::Predecessor | Self::Hub(_) => false,
        }
    }

    /// Whether any number of these may occur until a person acts, so that the log leaves them out.
    pub fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::NoCluster
                | Self::Predecessor
                | Self::Member(MemberError::NotRegistered(_))
                | Self::Hub(HubError::Changed(_))
        )
    }
}

impl From<Judgement> for Failure {
    /// For a judgement that gives no token.
    fn from(judgement: Judgement) -> Self {
        match judgement {
            Judgement::Refused(refusal) => Self::Refused(refusal),
            Judgement::Good { .. } | Judgement::Due(_) | Judgement::Predecessor => Self::Predecessor,
        }
    }
}
