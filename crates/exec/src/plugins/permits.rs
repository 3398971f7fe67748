//! Limits which programs run at the same time, so that programs that hang leave room for others.
//!
//! Only a run shows whether a program works, and after a restart nothing is known about any
//! program. So some permits are only for good programs, and some only for a first try, which is
//! short: many hanging programs end soon, and a working program is found among them. A program that
//! needed longer is tried again, for the operator's time limit, where this delays no others.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Most programs running at a time: the sum of the three kinds of permits.
pub const MOST_RUNNING: usize = LONG + FIRST + PROVEN;
/// Permits for full runs of any program.
const LONG: usize = 10;
/// Most of these for programs that failed the last time.
const SUSPECT: usize = 4;
/// Permits for first tries without another permit. Also for programs that succeeded before, because
/// a shared dependency may have failed for all of them at once.
const FIRST: usize = 4;
/// Permits for programs that succeeded the last time.
const PROVEN: usize = 2;

/// The time of a first try. A program that asks a cloud for a token needs a second or two, even one
/// written in Python.
pub(super) const FIRST_TRY: Duration = Duration::from_secs(5);

/// What is known about a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No run has ended yet.
    New,
    /// Its first try was too short.
    Slow,
    /// Its last run succeeded.
    Proven,
    /// Its last run failed.
    Suspect,
}

pub(super) struct Permits {
    long: Semaphore,
    suspect: Semaphore,
    first: Semaphore,
    proven: Semaphore,
}

/// A permit for one run, released on drop.
pub(super) enum Permit<'a> {
    /// For a full run.
    Whole { _permits: [Option<SemaphorePermit<'a>>; 2] },
    /// For a first try.
    FirstTry { _permit: SemaphorePermit<'a> },
}

// === impl Standing ===

impl Standing {
    /// The number of other runs that can block this one.
    pub(super) fn limit(self) -> usize {
        match self {
            Self::New => LONG + FIRST,
            Self::Slow => LONG,
            Self::Proven => MOST_RUNNING,
            Self::Suspect => SUSPECT,
        }
    }
}

// === impl Permits ===

impl Permits {
    pub(super) fn new() -> Self {
        let [long, suspect, first, proven] = [LONG, SUSPECT, FIRST, PROVEN].map(Semaphore::new);
        Self { long, suspect, first, proven }
    }

    /// Waits for a permit, behind earlier requests with the same standing.
    pub(super) async fn get(&self, standing: Standing) -> Permit<'_> {
        let whole = |permit| Permit::Whole { _permits: [Some(permit), None] };
        match standing {
            Standing::Slow => whole(take(&self.long).await),
            Standing::Suspect => {
                let suspect = take(&self.suspect).await;
                Permit::Whole { _permits: [Some(take(&self.long).await), Some(suspect)] }
            }
            Standing::Proven => tokio::select! {
                biased;
                permit = take(&self.long) => whole(permit),
                permit = take(&self.proven) => whole(permit),
                permit = take(&self.first) => Permit::FirstTry { _permit: permit },
            },
            Standing::New => tokio::select! {
                biased;
                permit = take(&self.long) => whole(permit),
                permit = take(&self.first) => Permit::FirstTry { _permit: permit },
            },
        }
    }
}

async fn take(permits: &Semaphore) -> SemaphorePermit<'_> {
    permits.acquire().await.expect("never closed")
}

#[cfg(test)]
impl Permits {
    /// Takes the permits for full runs until the returned value is dropped.
    pub(super) fn take_all_long(&self) -> SemaphorePermit<'_> {
        self.long.try_acquire_many(u32::try_from(LONG).expect("few")).expect("nobody has one")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn taken(permits: &Permits, standing: Standing) -> Vec<Permit<'_>> {
        std::iter::from_fn(|| permits.get(standing).now_or_never()).collect()
    }

    #[tokio::test]
    async fn each_standing_has_its_limit() {
        for standing in [Standing::New, Standing::Slow, Standing::Proven, Standing::Suspect] {
            assert_eq!(taken(&Permits::new(), standing).len(), standing.limit(), "{standing:?}");
        }
    }

    #[tokio::test]
    async fn no_crowd_keeps_good_programs_from_their_places() {
        for crowd in [Standing::New, Standing::Slow, Standing::Suspect] {
            let permits = Permits::new();
            let _crowd = taken(&permits, crowd);
            assert!(taken(&permits, Standing::Proven).len() >= PROVEN, "{crowd:?}");
        }
    }

    #[tokio::test]
    async fn together_they_are_no_more_than_may_run() {
        let permits = Permits::new();
        let all = [Standing::Suspect, Standing::New, Standing::Slow, Standing::Proven]
            .map(|standing| taken(&permits, standing));
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), MOST_RUNNING);
    }
}
