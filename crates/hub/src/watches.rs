//! Permits for watches of the hub, shared out so that no reader can take them all: everybody else's
//! informers would stand still.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Watches open at the hub, each with a connection of its own. More are refused: clients try again,
/// here or elsewhere.
const MOST: usize = 1024;
/// Of these, by one reader.
pub const MOST_OF_ONE: usize = MOST / 8;

/// The permits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Watches {
    all: Arc<Semaphore>,
    /// Open watches by reader; a reader without any has no entry.
    readers: Arc<Mutex<HashMap<Box<str>, usize>>>,
}

/// Room for one watch, until dropped.
pub struct Permit {
    _all: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// Why there is no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All are taken.
    ForAll,
    /// The reader has as many as one may have.
    ForReader,
}

/// A reader's part in the permits.
struct Share {
    readers: Arc<Mutex<HashMap<Box<str>, usize>>>,
    reader: Box<str>,
}

// === impl Watches ===

impl Watches {
    pub fn of(most: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), readers: Arc::default() }
    }

    /// Room for a watch of `reader`, or of the gateway itself, which is limited by what it does.
    pub fn enter(&self, reader: Option<&str>) -> Result<Permit, Full> {
        let share = reader.map(|reader| self.share(reader)).transpose()?;
        let all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Full::ForAll)?;
        Ok(Permit { _all: all, _share: share })
    }

    fn share(&self, reader: &str) -> Result<Share, Full> {
        let mut readers = self.readers.lock();
        let count = readers.entry(reader.into()).or_default();
        // A reader without an entry has room, so a refusal leaves nothing behind.
        if *count >= MOST_OF_ONE {
            return Err(Full::ForReader);
        }
        *count += 1;
        Ok(Share { readers: Arc::clone(&self.readers), reader: reader.into() })
    }
}

impl Default for Watches {
    fn default() -> Self {
        Self::of(MOST)
    }
}

// === impl Share ===

impl Drop for Share {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        if let Some(count) = readers.get_mut(&self.reader) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.reader);
            }
        }
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
        // Who watches nothing is not remembered.
        assert_eq!(watches.readers.lock().len(), 1);
    }

    #[test]
    fn together_they_have_a_limit_too() {
        let watches = Watches::of(2);
        let _open = [watches.enter(Some("alice")), watches.enter(None)].map(|permit| permit.expect("room"));
        assert!(matches!(watches.enter(Some("bob")), Err(Full::ForAll)));
        assert!(matches!(watches.enter(None), Err(Full::ForAll)));
        assert_eq!(watches.readers.lock().len(), 1, "a refusal is not counted");
    }
}
