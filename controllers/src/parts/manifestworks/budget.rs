//! Bytes of memory that works may take between two looks: of one cluster, and of all. Authors of
//! works and members choose how much there is to remember.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::shelf::Room;

/// A value takes about twice as much in memory as its JSON has bytes.
const OF_JSON: usize = 2;

/// One kind of room. Clones share.
#[derive(Debug, Clone)]
pub struct Budget {
    room: Room,
    in_all: Arc<AtomicUsize>,
    of_one: Arc<AtomicUsize>,
}

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
pub struct Charge {
    bytes: usize,
    of: Budget,
}

struct Counting(usize);

// === impl Budget ===

impl Budget {
    /// That of all clusters.
    pub fn new(room: Room) -> Self {
        Self { room, in_all: Arc::default(), of_one: Arc::default() }
    }

    /// The part of one cluster.
    pub fn of_one(&self) -> Self {
        Self { of_one: Arc::default(), ..self.clone() }
    }

    /// None: there is no room.
    pub fn take(&self, bytes: usize) -> Option<Charge> {
        self.add(bytes).then(|| Charge { bytes, of: self.clone() })
    }

    fn add(&self, bytes: usize) -> bool {
        let raise = |count: &AtomicUsize, most: usize| {
            let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= most);
            count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        };
        if !raise(&self.of_one, self.room.of_one) {
            return false;
        }
        let is_added = raise(&self.in_all, self.room.in_all);
        if !is_added {
            self.of_one.fetch_sub(bytes, Ordering::Relaxed);
        }
        is_added
    }

    fn give_back(&self, bytes: usize) {
        self.of_one.fetch_sub(bytes, Ordering::Relaxed);
        self.in_all.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// === impl Charge ===

impl Charge {
    /// Takes that much instead. Returns whether there is room for it: otherwise it stays as it is.
    pub fn set(&mut self, bytes: usize) -> bool {
        let has_room = self.of.add(bytes.saturating_sub(self.bytes));
        if has_room {
            self.of.give_back(self.bytes.saturating_sub(bytes));
            self.bytes = bytes;
        }
        has_room
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.of.give_back(self.bytes);
    }
}

// === impl Counting ===

impl io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that a value has as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counting = Counting(0);
    // What is counted cannot fail to be written.
    let _ = serde_json::to_writer(&mut counting, value);
    counting.0
}

/// Bytes that it takes in memory, roughly.
pub fn weighs(value: &impl Serialize) -> usize {
    OF_JSON * json_bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_takes_its_part_and_all_take_no_more_than_there_is() {
        let all = Budget::new(Room { in_all: 100, of_one: 60 });
        let (one, other) = (all.of_one(), all.of_one());
        let mut first = one.take(50).unwrap();
        assert!(one.take(20).is_none(), "it has its part");
        let second = other.take(50).unwrap();
        assert!(other.take(1).is_none() && one.take(1).is_none(), "all have what there is");
        assert!(!first.set(51) && first.set(40) && !first.set(51) && first.set(50));
        drop(second);
        assert!(first.set(60) && other.take(40).is_some());
        drop(first);
        assert_eq!([&all.in_all, &one.of_one, &other.of_one].map(|count| count.load(Ordering::Relaxed)), [0; 3]);
    }
}
