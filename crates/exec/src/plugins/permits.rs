//! How many programs run at a time, and which: those that hang leave room for those that do not.
//!
//! A program shows only in a run whether it works, and after a restart nothing is known of any. So
//! there are permits for good programs alone, and permits for a first try: short enough that a
//! crowd of hanging programs is through soon, and a working program is found among them. A program
//! that needed longer is tried once more, for as long as the operator allows, where that delays no
//! others.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Programs running at a time: the sum of the three kinds of permits.
pub const MOST_RUNNING: usize = LONG + FIRST + PROVEN;
/// For whole runs of any program.
const LONG: usize = 10;
/// Of these, for such as failed the last time.
const SUSPECT: usize = 4;
/// For first tries when there is no other permit, of programs that succeeded before too: what they
/// need may have gone away for all at once.
const FIRST: usize = 4;
/// For programs that succeeded the last time.
const PROVEN: usize = 2;

/// A first try's time. A program that asks a cloud for a token needs a second or two, even if it is
/// written in Python.
pub(super) const FIRST_TRY: Duration = Duration::from_secs(5);

/// What is known of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it has not been run to an end.
    New,
    /// Its first try was too short for it.
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

/// Room for one run, until dropped.
pub(super) enum Permit<'a> {
    /// For as long as a run may take.
    Whole { _permits: [Option<SemaphorePermit<'a>>; 2] },
    /// For a first try.
    FirstTry { _permit: SemaphorePermit<'a> },
}

// === impl Standing ===

impl Standing {
    /// How many can keep it from running.
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

    /// Waits for a permit, behind those that came before with the same standing.
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
    /// Whole runs of others until the permit is dropped.
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
