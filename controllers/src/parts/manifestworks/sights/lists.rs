//! How many answers of lists there are at a time, and how large they are together.

use std::time::Duration;

use fleet::Room;

use crate::parts::manifestworks::lanes::{Held, Lane, Lanes};

/// Answers at a time, of all members.
const ALL: usize = 64;
/// Of one.
const OF_ONE: usize = 2;
/// One that takes longer is slow.
const SLOW: Duration = Duration::from_secs(5);
/// Of them, such as are larger than [`Room::SMALL`]. With 16 MiB of each, all hold 128 MiB at most.
const LARGE: usize = 4;
const LARGE_OF_ONE: usize = 1;

/// Of all members.
#[derive(Clone)]
pub struct Lists {
    small: Lanes,
    large: Lanes,
}

/// Of one.
#[derive(Clone)]
pub struct ListsOfOne {
    small: Lane,
    large: Lane,
}

// === impl Lists ===

impl Lists {
    pub fn of_one(&self) -> ListsOfOne {
        ListsOfOne { small: self.small.lane(), large: self.large.lane() }
    }
}

impl Default for Lists {
    fn default() -> Self {
        Self { small: Lanes::new(ALL, OF_ONE, SLOW), large: Lanes::new(LARGE, LARGE_OF_ONE, SLOW) }
    }
}

impl Room for ListsOfOne {
    type Held = Held;
    const SMALL: usize = 1 << 20;

    async fn small(&self) -> Held {
        self.small.enter().await
    }

    async fn large(&self) -> Held {
        self.large.enter().await
    }
}
