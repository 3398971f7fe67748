//! Limits of concurrent responses of lists, and of long lines of watches, and of their size
//! together.

use std::time::Duration;

use fleet::Room;

use crate::parts::manifestworks::lanes::{Lane, LanePermit, Lanes};
use crate::parts::manifestworks::rest::Rest;

/// Concurrent responses of all members.
const ALL: usize = 64;
/// Concurrent responses of one member.
const OF_ONE: usize = 2;
/// A response that takes longer is slow.
const SLOW: Duration = Duration::from_secs(5);
/// Concurrent responses that are larger than [`Room::SMALL`]. With 16 MiB of each of these, all
/// responses together, small ones included, hold at most 128 MiB, and each half as much again while
/// it arrives. Besides its bytes, nothing of a response is held, whatever content the member sends
/// ([`fleet::Sight`]).
const LARGE: usize = 4;
const LARGE_OF_ONE: usize = 1;
/// Concurrent long lines of watches: with 3 MiB each, all together hold at most 24 MiB, in the same
/// way.
const LINES: usize = 8;
const LINES_OF_ONE: usize = 1;

/// The limits of all members.
#[derive(Clone)]
pub struct Lists {
    small: Lanes,
    large: Lanes,
    lines: Lanes,
}

/// The limits of one member.
#[derive(Clone)]
pub struct ListsOfOne {
    small: Lane,
    large: Lane,
    lines: Lane,
    /// The rest of its lists and watches: its works have one of their own.
    pub rest: Rest,
}

// === impl Lists ===

impl Lists {
    pub fn of_one(&self) -> ListsOfOne {
        let rest = Rest::default();
        ListsOfOne { small: self.small.lane(), large: self.large.lane(), lines: self.lines.lane(), rest }
    }
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            small: Lanes::new(ALL, OF_ONE, SLOW),
            large: Lanes::new(LARGE, LARGE_OF_ONE, SLOW),
            lines: Lanes::new(LINES, LINES_OF_ONE, SLOW),
        }
    }
}

impl Room for ListsOfOne {
    type Held = LanePermit;
    const SMALL: usize = 1 << 20;
    /// With twice as much in its buffer, the watches of a member hold at most 4 MiB without room.
    const SHORT: usize = 32 << 10;
    /// The longest request that an API server accepts.
    const LONG: usize = 3 << 20;

    /// Waits until its member need not be left alone. If a rest begins while it waits for room, it
    /// gives the room back until the rest ends: other members need not rest.
    async fn small(&self) -> LanePermit {
        loop {
            self.rest.over().await;
            let held = self.small.enter().await;
            if self.rest.until().is_none() {
                return held;
            }
        }
    }

    async fn large(&self) -> LanePermit {
        self.large.enter().await
    }

    async fn line(&self) -> LanePermit {
        self.lines.enter().await
    }
}
