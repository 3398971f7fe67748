//! Why a registered cluster is absent, and what that allows.

use super::{Moment, Withdrawal};

#[derive(Debug, Clone, Copy)]
pub(super) enum Absence {
    /// Its deletion was seen, or it was gone, but perhaps only because its kind or its source went
    /// away; no list since then lacks it yet. With a moment: two lists lacked it before its source
    /// became unreadable, and all of its source had been gone since that moment.
    Doubted(Option<Moment>),
    /// Missing from a list, for the first time at this moment; and the moment of the earlier doubt.
    Missing(Moment, Option<Moment>),
    Gone(Moment),
    /// It went together with all of its source, and no watch saw the deletions: their kind was
    /// recreated, or this program now uses another hub.
    AllGone(Moment),
    /// It exists, and says itself that it registers nothing any more.
    Withdrawn {
        since: Moment,
        by: Withdrawal,
    },
}

// === impl Absence ===

impl Absence {
    /// Since when all of its source is known to be gone, regardless of what was seen since.
    pub(super) fn all_gone(self) -> Option<Moment> {
        match self {
            Self::AllGone(since) => Some(since),
            Self::Doubted(gone) | Self::Missing(_, gone) => gone,
            Self::Gone(_) | Self::Withdrawn { .. } => None,
        }
    }

    /// When it ended, if it may be one of many that ended by mistake.
    pub(super) fn of_a_crowd(self) -> Option<Moment> {
        match self {
            Self::Gone(since) | Self::AllGone(since) | Self::Withdrawn { since, by: Withdrawal::Deletion } => {
                Some(since)
            }
            Self::Doubted(_)
            | Self::Missing(..)
            | Self::Withdrawn { by: Withdrawal::Refusal | Withdrawal::Stripped, .. } => None,
        }
    }
}
