//! How many programs run at a time, and which: those that hang leave room for those that do not.
//!
//! What a program is like shows only when it runs, and after a restart nothing is known of any. So there are places for good programs
//! alone, and places for a first try: short enough that a crowd of programs that hang is through with them soon, and a program that does
//! its work is found among them. Who needed longer is tried once more, for as long as the operator allows, where others are not kept
//! from their turn by it.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Programs running at a time: the sum of the three kinds of places.
pub const MOST_RUNNING: usize = LONG + FIRST + PROVEN;
/// For whole runs of any program.
const LONG: usize = 10;
/// Of these, for such as failed the last time.
const SUSPECT: usize = 4;
/// For first tries when there is no other place, of programs that succeeded before too: what they need may have gone away for all at once.
const FIRST: usize = 4;
/// For programs that succeeded the last time.
const PROVEN: usize = 2;

/// A first try's time. A program that asks a cloud for a token needs a second or two, even if it is written in Python.
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

pub(super) struct Places {
    long: Semaphore,
    suspect: Semaphore,
    first: Semaphore,
    proven: Semaphore,
}

/// Room for one run, until dropped.
pub(super) enum Place<'a> {
    /// For as long as a run may take.
    Whole { _places: [Option<SemaphorePermit<'a>>; 2] },
    /// For a first try.
    FirstTry { _place: SemaphorePermit<'a> },
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

// === impl Places ===

impl Places {
    pub(super) fn new() -> Self {
        let [long, suspect, first, proven] = [LONG, SUSPECT, FIRST, PROVEN].map(Semaphore::new);
        Self { long, suspect, first, proven }
    }

    /// Waits for a place, behind those that came before with the same standing.
    pub(super) async fn get(&self, standing: Standing) -> Place<'_> {
        let whole = |place| Place::Whole { _places: [Some(place), None] };
        match standing {
            Standing::Slow => whole(take(&self.long).await),
            Standing::Suspect => {
                let suspect = take(&self.suspect).await;
                Place::Whole { _places: [Some(take(&self.long).await), Some(suspect)] }
            }
            Standing::Proven => tokio::select! {
                biased;
                place = take(&self.long) => whole(place),
                place = take(&self.proven) => whole(place),
                place = take(&self.first) => Place::FirstTry { _place: place },
            },
            Standing::New => tokio::select! {
                biased;
                place = take(&self.long) => whole(place),
                place = take(&self.first) => Place::FirstTry { _place: place },
            },
        }
    }
}

async fn take(places: &Semaphore) -> SemaphorePermit<'_> {
    places.acquire().await.expect("never closed")
}

#[cfg(test)]
impl Places {
    /// Whole runs of others until the permit is dropped.
    pub(super) fn take_all_long(&self) -> SemaphorePermit<'_> {
        self.long.try_acquire_many(u32::try_from(LONG).expect("few")).expect("nobody has one")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn taken(places: &Places, standing: Standing) -> Vec<Place<'_>> {
        std::iter::from_fn(|| places.get(standing).now_or_never()).collect()
    }

    #[tokio::test]
    async fn each_standing_has_its_limit() {
        for standing in [Standing::New, Standing::Slow, Standing::Proven, Standing::Suspect] {
            assert_eq!(taken(&Places::new(), standing).len(), standing.limit(), "{standing:?}");
        }
    }

    #[tokio::test]
    async fn no_crowd_keeps_good_programs_from_their_places() {
        for crowd in [Standing::New, Standing::Slow, Standing::Suspect] {
            let places = Places::new();
            let _crowd = taken(&places, crowd);
            assert!(taken(&places, Standing::Proven).len() >= PROVEN, "{crowd:?}");
        }
    }

    #[tokio::test]
    async fn together_they_are_no_more_than_may_run() {
        let places = Places::new();
        let all = [Standing::Suspect, Standing::New, Standing::Slow, Standing::Proven]
            .map(|standing| taken(&places, standing));
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), MOST_RUNNING);
    }
}
