//! What a contender that does not lead has seen of the Lease, on its own clock, and its verdict.

use std::time::Duration;

use tokio::time::Instant;

use super::identity::Identity;
use super::lock::Record;

/// Decides when the Lease may be claimed. Pure: time is an argument.
#[derive(Debug)]
pub(super) struct Observed {
    me: Identity,
    /// For Leases without a duration. client-go takes these over at once, from any holder.
    lasts: Duration,
    last: Option<Sighting>,
    /// Whether the last read found no Lease.
    is_gone: bool,
}

#[derive(Debug)]
struct Sighting {
    record: Record,
    /// When it was seen first.
    since: Instant,
}

/// What the contender may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no Lease.
    Create,
    /// The Lease has no holder any more. Contains the number of transitions to write.
    Take { transitions: i32 },
    /// We hold it: we stopped leading without a release, or missed the response to a claim.
    Resume,
    /// Another contender holds it, until this time if nothing new is seen.
    Held(Instant),
}

// === impl Observed ===

impl Observed {
    /// `lasts`: the duration for a Lease without one.
    pub(super) fn new(me: Identity, lasts: Duration) -> Self {
        Self { me, lasts, last: None, is_gone: false }
    }

    /// Processes a read with its response at `now`. `record` was written before.
    ///
    /// A Lease that was deleted under another holder counts like one that is not renewed. client-go
    /// creates a new one at once, so two lead until the other reads again. The last sighting may be
    /// old by then, and the holder may have renewed just before the deletion, so the duration
    /// starts anew.
    pub(super) fn see(&mut self, record: Option<Record>, now: Instant) -> Verdict {
        let gone = record.is_none();
        if let Some(record) = record {
            if self.last.as_ref().is_none_or(|last| last.record != record) {
                self.last = Some(Sighting { record, since: now });
            }
        } else if let Some(last) = self.last.as_mut().filter(|_| !self.is_gone) {
            last.since = now;
        }
        self.is_gone = gone;
        let Some(Sighting { record, since }) = &self.last else { return Verdict::Create };
        let ours = record.holder.as_deref() == Some(self.me.as_str());
        let until = *since + record.lasts.unwrap_or(self.lasts);
        if record.holder.is_some() && !ours && now < until {
            Verdict::Held(until)
        } else if gone {
            Verdict::Create
        } else if ours {
            Verdict::Resume
        } else {
            Verdict::Take { transitions: record.transitions.saturating_add(1) }
        }
    }

    /// The holder at the last sighting of the Lease.
    pub(super) fn holder(&self) -> Option<&str> {
        self.last.as_ref()?.record.holder.as_deref()
    }
}

#[cfg(test)]
mod tests;
