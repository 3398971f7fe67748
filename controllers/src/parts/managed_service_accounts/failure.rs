//! Why a look at a `ManagedServiceAccount` brought nothing.

use register::managed_service_account::{Judgement, Refusal};

use super::member::MemberError;
use super::objects::HubError;

/// Tries after which what a member's controllers should have published is missed, and an error of
/// a member is no passing one.
const PATIENCE: u32 = 5;

/// It is tried again.
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
    /// Whether the condition says it: a person has to correct something. A cluster that is away has
    /// none. `failures`: as many tries before this one failed.
    pub fn is_told(&self, failures: u32) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Member(error) => match error {
                MemberError::Refused(_) | MemberError::Forbidden(_) | MemberError::NotFound(_) => true,
                MemberError::NoAuthority(_) | MemberError::Broken(_) => failures >= PATIENCE,
                MemberError::NotRegistered(_) | MemberError::Away(_) | MemberError::NotLeading(_) => false,
            },
            // A quota, say, or a policy.
            Self::Hub(HubError::Call(_, error)) => matches!(error.code(), Some(400 | 403 | 422)),
            Self::Unreadable(_) | Self::NoCluster | Self::Predecessor | Self::Hub(_) => false,
        }
    }

    /// Whether there may be any number of such until a person acts: they are no matter for the log.
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
    /// Of a judgement that gives no token.
    fn from(judgement: Judgement) -> Self {
        match judgement {
            Judgement::Refused(refusal) => Self::Refused(refusal),
            Judgement::Good { .. } | Judgement::Due(_) | Judgement::Predecessor => Self::Predecessor,
        }
    }
}
