//! How many answers of lists, and long lines of watches, there are at a time, and how large they
//! are together.

use std::time::Duration;

use fleet::Room;

use crate::parts::manifestworks::lanes::{Held, Lane, Lanes};
use crate::parts::manifestworks::rest::Rest;

/// Answers at a time, of all members.
const ALL: usize = 64;
/// Of one.
const OF_ONE: usize = 2;
/// One that takes longer is slow.
const SLOW: Duration = Duration::from_secs(5);
/// Of them, such as are larger than [`Room::SMALL`]. With 16 MiB of each, all hold 128 MiB at most,
/// and each half as much again while it comes. Beside its bytes nothing of an answer is held,
/// whatever a member has in it ([`fleet::Sight`]).
const LARGE: usize = 4;
const LARGE_OF_ONE: usize = 1;
/// Long lines of watches at a time: with 3 MiB of each, all hold 24 MiB at most, in the same way.
const LINES: usize = 8;
const LINES_OF_ONE: usize = 1;

/// Of all members.
#[derive(Clone)]
pub struct Lists {
    small: Lanes,
    large: Lanes,
    lines: Lanes,
}

/// Of one.
#[derive(Clone)]
pub struct ListsOfOne {
    small: Lane,
    large: Lane,
    lines: Lane,
    /// Of its lists and watches: its works have one of their own.
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
    type Held = Held;
    const SMALL: usize = 1 << 20;
    /// With twice as much in its buffer, the watches of a member hold 4 MiB at most without room.
    const SHORT: usize = 32 << 10;
    /// That of the longest request that an API server takes.
    const LONG: usize = 3 << 20;

    /// Once its member is not to be left alone. Room that was waited for is given back until then:
    /// others' members need not rest.
    async fn small(&self) -> Held {
        loop {
            self.rest.over().await;
            let held = self.small.enter().await;
            if self.rest.until().is_none() {
                return held;
            }
        }
    }

    async fn large(&self) -> Held {
        self.large.enter().await
    }

    async fn line(&self) -> Held {
        self.lines.enter().await
    }
}
