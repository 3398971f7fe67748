//! Labels and claims, for lookups of few names.

use std::collections::BTreeMap;

/// Up to this many are searched one by one: most differ in their lengths, which are next to each
/// other, so that hardly any text is read. A tree reads some texts on each way down.
const FEW: usize = 16;

/// Names with their values. If several have one name, the last counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

/// Texts, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts(Box<[Box<str>]>);

// === impl Labels ===

impl Labels {
    pub fn get(&self, name: &str) -> Option<&str> {
        find(&self.0, |(name, _)| name, name).map(|(_, value)| &**value)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A copy with this value for `name`, or without `name`.
    #[must_use]
    pub fn with(&self, name: &str, value: Option<&str>) -> Self {
        let others = self.0.iter().filter(|(other, _)| &**other != name).map(|(name, value)| (&**name, &**value));
        others.chain(value.map(|value| (name, value))).collect()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(N, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let sorted: BTreeMap<Box<str>, Box<str>> =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self(sorted.into_iter().collect())
    }
}

// === impl Texts ===

impl Texts {
    pub fn has(&self, text: &str) -> bool {
        find(&self.0, |text| text, text).is_some()
    }
}

impl<'t> FromIterator<&'t String> for Texts {
    fn from_iter<I: IntoIterator<Item = &'t String>>(texts: I) -> Self {
        let mut sorted: Vec<Box<str>> = texts.into_iter().map(|text| text.as_str().into()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        Self(sorted.into())
    }
}

/// The entry of that name, in entries that are sorted by name.
pub(crate) fn find<'e, E>(entries: &'e [E], name: impl Fn(&E) -> &str, wanted: &str) -> Option<&'e E> {
    if entries.len() <= FEW {
        return entries.iter().find(|entry| name(entry) == wanted);
    }
    let found = entries.binary_search_by(|entry| name(entry).cmp(wanted)).ok()?;
    entries.get(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_and_many_are_found_as_in_a_map(pairs in prop::collection::vec(("[a-d]{0,3}", "[a-d]{0,2}"), 0..60)) {
            let map: BTreeMap<String, String> = pairs.iter().cloned().collect();
            let labels: Labels = pairs.into_iter().collect();
            prop_assert_eq!(labels.len(), map.len());
            for name in ["", "a", "ab", "abc", "dd", "bad", "cab"] {
                prop_assert_eq!(labels.get(name), map.get(name).map(String::as_str));
            }
            let values: Texts = map.values().collect();
            for value in ["", "a", "bb", "dc", "xyz"] {
                prop_assert_eq!(values.has(value), map.values().any(|other| other == value));
            }
        }
    }
}
