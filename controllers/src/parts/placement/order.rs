//! The order in which decisions are written. Readers may find a cluster twice, but never not at
//! all, because a workload is deleted from a cluster that no decision names.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::plan::Change;

/// A write of the change at `index`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub index: usize,
    /// Adds the clusters that the decision gains and drops none yet. Another write of it follows.
    pub is_widening: bool,
    /// Changes that take the clusters that this one drops. Without all of them this write must not
    /// happen.
    pub after: Vec<usize>,
}

/// All writes, in waves: a wave depends only on the waves before it.
///
/// A change that drops a cluster comes after the change that takes it. Where such changes form a
/// cycle, one of them is written twice, and has too many clusters in between.
pub fn waves(changes: &[Change]) -> Vec<Vec<Write>> {
    let mut needs = needs(changes);
    let mut written: HashSet<usize> = HashSet::new();
    let mut left: BTreeSet<usize> = (0..changes.len()).collect();
    let mut waves = Vec::new();
    while !left.is_empty() {
        let free: Vec<usize> = left.iter().copied().filter(|index| needs[*index].is_subset(&written)).collect();
        let mut wave = Vec::new();
        for index in &free {
            left.remove(index);
            let after = std::mem::take(&mut needs[*index]).into_iter().collect();
            wave.push(Write { index: *index, is_widening: false, after });
        }
        if let Some(index) = left.iter().copied().find(|index| free.is_empty() && !written.contains(index)) {
            wave.push(Write { index, is_widening: true, after: Vec::new() });
        }
        written.extend(wave.iter().map(|write| write.index));
        waves.push(wave);
    }
    waves
}

/// By index: the changes that must come before.
fn needs(changes: &[Change]) -> Vec<HashSet<usize>> {
    let mut takers: HashMap<&str, usize> = HashMap::new();
    for (index, change) in changes.iter().enumerate() {
        let before: HashSet<&str> = change.before.iter().map(String::as_str).collect();
        let gained = change.list.iter().flatten().map(String::as_str).filter(|name| !before.contains(name));
        takers.extend(gained.map(|name| (name, index)));
    }
    let of = |change: &Change| -> HashSet<usize> {
        let Some(list) = &change.list else { return HashSet::new() };
        let after: HashSet<&str> = list.iter().map(String::as_str).collect();
        let lost = change.before.iter().map(String::as_str).filter(|name| !after.contains(name));
        lost.filter_map(|name| takers.get(name).copied()).collect()
    };
    changes.iter().map(of).collect()
}

// === impl Change ===

impl Change {
    /// The union of the old and the new list, for a write that drops nothing yet.
    pub fn widened(&self) -> Option<Vec<String>> {
        let list = self.list.as_ref()?;
        let both: BTreeSet<&String> = self.before.iter().chain(list).collect();
        Some(both.into_iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &[&str], after: &[&str]) -> Change {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Change {
            name: String::new(),
            version: (!before.is_empty()).then(|| "1".to_owned()),
            before: names(before),
            metadata: None,
            list: Some(names(after)),
        }
    }

    /// No cluster that stays is ever in no decision, whichever wave is the last one written.
    fn check(changes: &[Change]) {
        let stays: HashSet<&String> = changes.iter().flat_map(|change| change.list.iter().flatten()).collect();
        let had: HashSet<&String> = changes.iter().flat_map(|change| &change.before).collect();
        let mut now: Vec<Vec<String>> = changes.iter().map(|change| change.before.clone()).collect();
        let mut written = HashSet::new();
        for wave in waves(changes) {
            assert!(!wave.is_empty(), "it ends");
            for write in &wave {
                assert!(write.after.iter().all(|needed| written.contains(needed)), "{write:?}");
                let change = &changes[write.index];
                let list = if write.is_widening { change.widened() } else { change.list.clone() };
                now[write.index] = list.unwrap();
                for name in stays.intersection(&had) {
                    assert!(now.iter().flatten().any(|one| one == *name), "{name} is nowhere");
                }
            }
            written.extend(wave.iter().map(|write| write.index));
        }
        let lists: Vec<_> = changes.iter().map(|change| change.list.clone().unwrap()).collect();
        assert_eq!(now, lists);
    }

    #[test]
    fn what_others_take_is_lost_only_then() {
        let shrinks = change(&["a", "b", "c"], &["a"]);
        check(&[shrinks, change(&[], &["b"]), change(&[], &["c"])]);
        // One cluster more at the front moves all others by one.
        let by_one = [change(&["b", "c"], &["a", "b"]), change(&["d", "e"], &["c", "d"]), change(&[], &["e"])];
        check(&by_one);
        assert_eq!(waves(&by_one).iter().map(Vec::len).sum::<usize>(), 3, "nothing twice");
        // One cluster less.
        check(&[change(&["a", "b"], &["b", "c"]), change(&["c", "d"], &["d"])]);
    }

    #[test]
    fn those_that_change_places_meet() {
        let swap = [change(&["a"], &["b"]), change(&["b"], &["c"]), change(&["c"], &["a"]), change(&["x"], &["y"])];
        check(&swap);
        assert_eq!(waves(&swap).iter().map(Vec::len).sum::<usize>(), 5, "one of them twice");
    }

    #[test]
    fn what_is_independent_goes_at_once() {
        assert_eq!(waves(&[change(&[], &["a"]), change(&["b"], &[]), change(&["c"], &["d"])]).len(), 1);
    }
}
