//! Who waits for something, in the order in which they came.

use std::collections::{BTreeMap, HashMap};

/// Names, each once.
#[derive(Debug, Default)]
pub struct Line {
    places: HashMap<String, u64>,
    names: BTreeMap<u64, String>,
    next: u64,
}

// === impl Line ===

impl Line {
    /// Puts a name at the end, unless it waits already. Returns whether it did not.
    pub fn insert(&mut self, name: &str) -> bool {
        if self.places.contains_key(name) {
            return false;
        }
        self.places.insert(name.to_owned(), self.next);
        self.names.insert(self.next, name.to_owned());
        self.next += 1;
        true
    }

    /// Whether it waited.
    pub fn remove(&mut self, name: &str) -> bool {
        let place = self.places.remove(name);
        place.is_some_and(|place| self.names.remove(&place).is_some())
    }

    /// Who has waited longest.
    pub fn pop(&mut self) -> Option<String> {
        let (_, name) = self.names.pop_first()?;
        self.places.remove(&name);
        Some(name)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_is_first_whatever_the_name() {
        let mut line = Line::default();
        for name in ["z", "b", "a"] {
            assert!(line.insert(name));
        }
        assert!(!line.insert("z") && line.remove("b") && !line.remove("b"));
        assert_eq!(line.pop().as_deref(), Some("z"));
        assert!(line.insert("z"), "again, and at the end");
        assert_eq!((line.len(), line.pop().as_deref(), line.pop().as_deref()), (2, Some("a"), Some("z")));
        assert_eq!(line.pop(), None);
    }
}
