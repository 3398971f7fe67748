//! Members' answers about objects. Most are the usual answer, of which only a number is kept: a
//! member writes the list of its objects, and may name tens of thousands.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use delivery::identity::Identity;

/// Memory of a map's entry besides its key's texts, and of a number in a set, in bytes.
const ENTRY: usize = 192;
const NUMBER: usize = 16;

pub struct Answers<T> {
    /// With a random key, so that no member can choose names with colliding numbers.
    hasher: RandomState,
    usual: HashSet<u64>,
    others: HashMap<Identity, T>,
}

// === impl Answers ===

impl<T> Answers<T> {
    /// `other` is an answer that is not the usual one.
    pub fn insert(&mut self, identity: Identity, other: Option<T>) {
        if let Some(other) = other {
            self.others.insert(identity, other);
        } else {
            let number = self.number(&identity);
            self.usual.insert(number);
        }
    }

    pub fn has(&self, identity: &Identity) -> bool {
        self.is_usual(identity) || self.others.contains_key(identity)
    }

    pub fn is_usual(&self, identity: &Identity) -> bool {
        self.usual.contains(&self.number(identity))
    }

    pub fn other(&self, identity: &Identity) -> Option<&T> {
        self.others.get(identity)
    }

    /// Forgets the answers about all other objects.
    pub fn retain<'i>(&mut self, all: impl IntoIterator<Item = &'i Identity>) {
        let all: HashSet<u64> = all.into_iter().map(|identity| self.number(identity)).collect();
        let Self { hasher, usual, others } = self;
        usual.retain(|number| all.contains(number));
        others.retain(|identity, _| all.contains(&hasher.hash_one(identity)));
    }

    /// Forgets everything except the numbers.
    pub fn forget_others(&mut self) {
        self.others = HashMap::new();
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.usual.len() + self.others.len()
    }

    /// Memory in bytes, roughly. `beside` returns the bytes of an answer besides its own size.
    pub fn weighs(&self, beside: impl Fn(&T) -> usize) -> usize {
        let others = self.others.iter().map(|(identity, other)| {
            let Identity { group, resource, name, namespace } = identity;
            ENTRY + size_of::<T>() + group.len() + resource.len() + name.len() + namespace.len() + beside(other)
        });
        NUMBER * self.usual.len() + others.sum::<usize>()
    }

    fn number(&self, identity: &Identity) -> u64 {
        self.hasher.hash_one(identity)
    }
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self { hasher: RandomState::new(), usual: HashSet::new(), others: HashMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_usual_answer_only_a_number_is_kept() {
        let identity = |number: usize| Identity { name: format!("{number}"), ..Identity::default() };
        let mut answers = Answers::default();
        for number in 0..10_000 {
            answers.insert(identity(number), None);
        }
        answers.insert(identity(10_000), Some("no".to_owned()));
        let weighs = |answers: &Answers<String>| answers.weighs(String::len);
        assert!(weighs(&answers) < 200_000, "{}", weighs(&answers));
        assert!(answers.is_usual(&identity(7)) && !answers.is_usual(&identity(10_000)));
        assert_eq!(answers.other(&identity(10_000)).map(String::as_str), Some("no"));
        assert!(answers.has(&identity(10_000)) && !answers.has(&identity(10_001)));
        answers.retain(&[identity(7), identity(10_000), identity(10_001)]);
        assert_eq!(answers.len(), 2, "what is not told any more is forgotten");
        answers.forget_others();
        assert!(answers.is_usual(&identity(7)) && !answers.has(&identity(10_000)));
    }
}
