//! What the judged clusters say about the path to one silent cluster.

use std::time::Instant;

use super::{Answers, FEW, FRESH};

/// What the judged clusters say about the path to one silent cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answering {
    /// Clusters that are not already lost.
    pub(super) untold: usize,
    /// Of these, those that answered recently.
    pub(super) healthy: usize,
    /// Of the untold, those that have ever answered.
    pub(super) known: usize,
    /// Of the known, those that are not silent, or whose silence did not begin more than [`FRESH`]
    /// periods before this one's.
    pub(super) judged: usize,
    /// Of these, those that answered recently, or since this one fell silent.
    pub(super) witnesses: usize,
}

// === impl Answering ===

impl Answering {
    /// Counts `one`, which is silent, and all `others`, at `now`. Clusters that are already lost
    /// count no more, and clusters that never answered do not count yet. Nor do clusters that
    /// cannot be probed, or whose registration is broken, while probes reach others.
    ///
    /// Each cluster controls what it answers, and when. So a cluster that was silent before this
    /// one says nothing about the path, and one that answered since shows that there is a path: a
    /// cluster that answers now and then, or takes hours to be lost, does not delay another's loss.
    pub fn of<'a>(one: &'a Answers, others: impl Iterator<Item = &'a Answers>, now: Instant) -> Self {
        let mut fleet = Self::default();
        for member in others.chain([one]).filter(|member| !member.is_lost && !member.is_unasked()) {
            let is_healthy = member.has_answered_within(FRESH * member.period, now);
            let is_witness = is_healthy || member.has_answered_since(one);
            fleet.untold += 1;
            fleet.healthy += usize::from(is_healthy);
            fleet.known += usize::from(member.has_answered);
            fleet.judged += usize::from(is_witness || member.has_answered && !member.was_silent_before(one));
            fleet.witnesses += usize::from(is_witness);
        }
        fleet
    }

    /// Whether the path to members is more likely at fault than the members: of three or more,
    /// fewer than half have answered, or none answers. (Kubernetes' node lifecycle controller does
    /// not evict either when all nodes are lost.)
    pub fn is_doubtful(self) -> bool {
        let Self { judged, witnesses, .. } = self;
        (judged >= FEW && witnesses * 2 < judged) || self.is_blind()
    }

    /// Whether, of three or more that ever answered, fewer than half answer now.
    pub(super) fn is_strained(self) -> bool {
        self.known >= FEW && self.healthy * 2 < self.known
    }

    /// Whether none answers: then no loss is reported, for however long.
    pub fn is_blind(self) -> bool {
        self.untold >= FEW && self.healthy == 0
    }
}
