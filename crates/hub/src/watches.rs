//! Permits for watches of the hub. Each reader has a limit, because one reader with all permits
//! would stop the informers of every other reader.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use net::permit::Permit;
use net::shares::{Share, Shares};

/// Most watches open at the hub, each with its own connection. Further ones are refused: clients
/// retry, on this replica or on another.
const MOST: usize = 1024;
/// Most of these for one reader.
pub const MOST_OF_ONE: usize = MOST / 8;

/// The permits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Watches {
    /// Open watches.
    all: Arc<AtomicUsize>,
    most: usize,
    /// Open watches by reader.
    readers: Shares<Box<str>>,
}

/// A permit for one watch, released on drop.
pub struct WatchPermit {
    _all: Permit<AtomicUsize>,
    _share: Option<Share<Box<str>>>,
}

/// Why no permit was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All permits are taken.
    ForAll,
    /// This reader has reached its limit.
    ForReader,
}

// === impl Watches ===

impl Watches {
    pub fn of(most: usize) -> Self {
        Self { all: Arc::default(), most, readers: Shares::default() }
    }

    /// A permit for a watch by `reader`. `None` is the gateway itself, which has no limit of its
    /// own: its design bounds the number of its watches.
    pub fn enter(&self, reader: Option<&str>) -> Result<WatchPermit, Full> {
        let enter = |reader: &str| self.readers.enter(reader.into(), MOST_OF_ONE).ok_or(Full::ForReader);
        let share = reader.map(enter).transpose()?;
        let all = Permit::of(&self.all, self.most).ok_or(Full::ForAll)?;
        Ok(WatchPermit { _all: all, _share: share })
    }
}

impl Default for Watches {
    fn default() -> Self {
        Self::of(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reader_does_not_get_what_is_for_all() {
        let watches = Watches::default();
        let mut open: Vec<_> = std::iter::from_fn(|| watches.enter(Some("alice")).ok()).take(MOST).collect();
        assert_eq!(open.len(), MOST_OF_ONE);
        assert!(matches!(watches.enter(Some("alice")), Err(Full::ForReader)));
        let _other = watches.enter(Some("bob")).expect("another's share");
        open.pop();
        open.push(watches.enter(Some("alice")).expect("room again"));
        drop(open);
        // A reader without watches has no entry.
        assert_eq!(watches.readers.keys(), 1);
    }

    #[test]
    fn together_they_have_a_limit_too() {
        let watches = Watches::of(2);
        let _open = [watches.enter(Some("alice")), watches.enter(None)].map(|permit| permit.expect("room"));
        assert!(matches!(watches.enter(Some("bob")), Err(Full::ForAll)));
        assert!(matches!(watches.enter(None), Err(Full::ForAll)));
        assert_eq!(watches.readers.keys(), 1, "a refusal is not counted");
    }
}
