//! A queue of names, in order of arrival.

use std::collections::{BTreeMap, HashMap};

/// Names without duplicates.
#[derive(Debug, Default)]
pub struct WaitingNames {
    positions: HashMap<String, u64>,
    names: BTreeMap<u64, String>,
    next: u64,
    /// Positions of the names called last: a name that was called, but came too late, is first
    /// again.
    called: HashMap<String, u64>,
}

/// Limit of the kept positions of called names: some may never come back.
const CALLED: usize = 256;

// === impl WaitingNames ===

impl WaitingNames {
    /// Puts a name at the end, or at its position when it was called, unless it already waits.
    /// Returns whether it was inserted.
    pub fn insert(&mut self, name: &str) -> bool {
        if self.positions.contains_key(name) {
            return false;
        }
        let position = self.called.remove(name).unwrap_or(self.next);
        self.positions.insert(name.to_owned(), position);
        self.names.insert(position, name.to_owned());
        self.next = self.next.max(position + 1);
        true
    }

    /// The name has got what it waited for. Returns whether it was waiting.
    pub fn remove(&mut self, name: &str) -> bool {
        self.called.remove(name);
        let position = self.positions.remove(name);
        position.is_some_and(|position| self.names.remove(&position).is_some())
    }

    /// Calls the name that has waited longest: it no longer waits.
    pub fn call(&mut self) -> Option<String> {
        let (position, name) = self.names.pop_first()?;
        self.positions.remove(&name);
        if self.called.len() >= CALLED {
            self.called.clear();
        }
        self.called.insert(name.clone(), position);
        Some(name)
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_is_first_whatever_the_name() {
        let mut line = WaitingNames::default();
        for name in ["z", "b", "a"] {
            assert!(line.insert(name));
        }
        assert!(!line.insert("z") && line.remove("b") && !line.remove("b"));
        assert_eq!(line.call().as_deref(), Some("z"));
        assert!(!line.remove("z") && line.insert("z"), "it had its turn, and is at the end");
        assert_eq!((line.len(), line.call().as_deref(), line.call().as_deref()), (2, Some("a"), Some("z")));
        assert_eq!(line.call(), None);
    }

    #[test]
    fn who_was_called_and_came_too_late_is_first_again() {
        let mut line = WaitingNames::default();
        for name in ["a", "b", "c"] {
            line.insert(name);
        }
        assert_eq!((line.call().as_deref(), line.call().as_deref()), (Some("a"), Some("b")));
        assert!(line.insert("d") && line.insert("b") && line.insert("a"));
        let order: Vec<_> = std::iter::from_fn(|| line.call()).collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
        // A name that got what it was called for goes to the end, the next time.
        line.remove("a");
        assert!(line.insert("e") && line.insert("a"));
        assert_eq!((line.call().as_deref(), line.call().as_deref()), (Some("e"), Some("a")));
        // Names that never come back are not kept forever.
        for number in 0..2 * CALLED {
            line.insert(&number.to_string());
            line.call();
        }
        assert!(line.called.len() <= CALLED);
    }
}
