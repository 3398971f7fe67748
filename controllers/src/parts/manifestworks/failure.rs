//! Why a pass over a work failed.

use std::time::Duration;

use api::side::Side;

use super::member::{MemberError, OWN};
use crate::parts::hub_calls::CallError;
use crate::term::NotLeading;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Member(MemberError),
    #[error(transparent)]
    Hub(#[from] CallError),
    #[error("AppliedManifestWork is defined but not served yet: see the conditions of its CustomResourceDefinition")]
    Defined,
    #[error(
        "cluster {cluster}: AppliedManifestWork {name} is kept by {agent:?}. To take it over, stop that agent, \
         then `kubectl annotate managedcluster {cluster} cluster.core.oam.dev/delivery=adopt --overwrite`. If the \
         value is `adopt` already, set `push` first: each change to `adopt` takes it over once"
    )]
    Foreign { cluster: String, name: String, agent: String },
    #[error(
        "cluster {cluster}: AppliedManifestWork {name} is kept for cluster {other:?}, which leads to the same \
         member and has a work of that name: give one of them another name. Or, to take it over, remove the \
         annotation cluster.core.oam.dev/delivery from {other}, then `kubectl annotate managedcluster {cluster} \
         cluster.core.oam.dev/delivery=adopt --overwrite`"
    )]
    Shared { cluster: String, name: String, other: String },
    #[error(
        "cluster {cluster}: AppliedManifestWork {name} is of an earlier version of these controllers, and lists no object \
         of this work: it is this cluster's, or that of another which leads to the same member. If there is no other, \
         `kubectl annotate managedcluster {cluster} cluster.core.oam.dev/delivery=adopt --overwrite`; otherwise give the \
         work another name"
    )]
    Earlier { cluster: String, name: String },
    #[error(
        "cluster {cluster}: another client keeps deleting AppliedManifestWork {name}, or taking it over: it is \
         written again after {after:?}"
    )]
    Contested { cluster: String, name: String, after: Duration },
    #[error("the work is gone")]
    Gone,
    /// Its slot has lasted long enough.
    #[error("its turn is over, and the work waits for its next one")]
    SlotOver,
    /// Others come first.
    #[error("its cluster is slow, and the work waits for its turn among those of slow ones")]
    Slow,
    #[error("spec.deleteOption is not valid ({0}): no object is deleted until you correct it")]
    DeleteOption(String),
    #[error("spec.executor is not valid ({0}): no object is deleted until you correct it")]
    Executor(String),
    #[error("an object of the member cannot be read: {0}")]
    Unreadable(String),
}

/// Wait until somebody may have granted missing rights.
const GRANTED: Duration = Duration::from_mins(1);

// === impl Failure ===

impl Failure {
    /// Nothing failed: the pass continues in its next slot.
    pub fn is_for_slot(&self) -> bool {
        matches!(self, Self::SlotOver | Self::Slow)
    }

    /// The cluster did not answer; returns the minimum time to leave it alone.
    pub fn away(&self) -> Option<Duration> {
        match self {
            Self::Member(MemberError::Away(failure) | MemberError::Late(failure)) => {
                Some(failure.retry_after.unwrap_or_default())
            }
            _ => None,
        }
    }

    /// The hub refuses us access, or the member's credential lacks rights that any work needs.
    pub fn forbidden(&self) -> Option<String> {
        match self {
            Self::Member(MemberError::Closed(failure)) => Some(format!("forbidden: {failure}")),
            Self::Member(error) if error.is_forbidden() => Some(format!("forbidden: {error}")),
            _ => None,
        }
    }

    /// The hub refuses our access to the cluster.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Member(MemberError::Closed(_)))
    }

    /// The status text of a work that cannot even be begun.
    pub fn of_work(&self) -> Option<String> {
        match self {
            Self::Member(MemberError::Refused(_)) | Self::Unreadable(_) | Self::Defined => Some(self.to_string()),
            _ => None,
        }
    }

    /// Where it failed, as the gateway's log names it.
    pub fn hop(&self) -> &'static str {
        match self {
            Self::Member(error) => error.hop(),
            Self::Hub(_) => Side::Hub.as_str(),
            _ => OWN,
        }
    }

    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Member(error) => error.is_conflict(),
            Self::Hub(error) => error.is_conflict(),
            _ => false,
        }
    }

    /// The hub refuses the written object for its size.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Hub(error) if error.is_too_large())
    }

    /// This replica no longer processes the work: another replica does, or the work is gone.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            Self::Gone | Self::Member(MemberError::NotLeading(NotLeading)) | Self::Hub(CallError::NotLeading(_))
        )
    }

    /// Another keeper has the list of applied objects: it is not fought over.
    pub fn is_kept_by_others(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Shared { .. } | Self::Earlier { .. })
    }

    /// The wait before a retry, if the back-off does not determine it.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Contested { after, .. } => Some(*after),
            _ if self.is_kept_by_others() || self.forbidden().is_some() => Some(GRANTED),
            _ => None,
        }
    }
}

impl From<MemberError> for Failure {
    fn from(error: MemberError) -> Self {
        Self::Member(error)
    }
}
