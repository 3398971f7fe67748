//! Limits of the memory that works may keep between two passes: for one cluster, and for all.
//! Authors of works and members determine how much there is to keep.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::shelf::MemoryLimits;

/// A value takes about twice as much in memory as its JSON has bytes.
const OF_JSON: usize = 2;

/// The allowance for one kind of memory. Clones share it.
#[derive(Debug, Clone)]
pub struct Allowance {
    room: MemoryLimits,
    in_all: Arc<AtomicUsize>,
    of_one: Arc<AtomicUsize>,
}

/// Bytes that are reserved until this is dropped.
#[derive(Debug)]
pub struct Charge {
    bytes: usize,
    of: Allowance,
}

struct Counting(usize);

// === impl Allowance ===

impl Allowance {
    /// The allowance of all clusters.
    pub fn new(room: MemoryLimits) -> Self {
        Self { room, in_all: Arc::default(), of_one: Arc::default() }
    }

    /// The share of one cluster.
    pub fn of_one(&self) -> Self {
        Self { of_one: Arc::default(), ..self.clone() }
    }

    /// None if there is no room.
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
    /// Changes the reservation to `bytes`. Returns whether there is room for it; otherwise it stays
    /// unchanged.
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

/// Bytes of a value as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counting = Counting(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counting, value);
    counting.0
}

/// Memory of a value in bytes, roughly.
pub fn weighs(value: &impl Serialize) -> usize {
    OF_JSON * json_bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_takes_its_part_and_all_take_no_more_than_there_is() {
        let all = Allowance::new(MemoryLimits { in_all: 100, of_one: 60 });
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
