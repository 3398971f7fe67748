//! What a contender that does not lead has seen of the Lease, by its own clock, and what follows
//! from it.

use std::time::Duration;

use tokio::time::Instant;

use super::identity::Identity;
use super::lock::Record;

/// Decides when the Lease may be claimed. Pure: time is an argument.
#[derive(Debug)]
pub(super) struct Observed {
    me: Identity,
    /// For Leases without a duration: client-go takes these over at once, from any holder.
    lasts: Duration,
    last: Option<Sighting>,
    /// Whether there was no Lease when it was last looked for.
    is_gone: bool,
}

#[derive(Debug)]
struct Sighting {
    record: Record,
    /// When it was seen first.
    since: Instant,
}

/// What may be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no Lease.
    Create,
    /// It has no holder any more. With the transitions to write.
    Take { transitions: i32 },
    /// It is ours: we stopped leading without giving it up, or claimed it without hearing so.
    Resume,
    /// Another holds it, until then if nothing new is seen.
    Held(Instant),
}

// === impl Observed ===

impl Observed {
    /// `lasts`: how long a Lease holds that does not say.
    pub(super) fn new(me: Identity, lasts: Duration) -> Self {
        Self { me, lasts, last: None, is_gone: false }
    }

    /// `record` was read; the answer was there at `now`, so that it was written before.
    ///
    /// A Lease that is deleted while another holds it is as good as one that is not renewed:
    /// client-go makes a new one at once, and two lead until the other looks again. What was seen
    /// of it may be old by then, and the holder may have renewed it just before its end: its time
    /// begins anew.
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

    /// The holder when the Lease was last seen.
    pub(super) fn holder(&self) -> Option<&str> {
        self.last.as_ref()?.record.holder.as_deref()
    }
}

#[cfg(test)]
mod tests;
