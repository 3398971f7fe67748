//! Reads of a `ManagedCluster` no more than counts. Its writer may be a stranger, who has a
//! mebibyte and a half for it: labels without values would take ten times that in memory, and a
//! page of such objects is read at once.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{AVAILABLE, ClientConfig, Condition};
use crate::hub_object::HubMeta;
use crate::secret::{ALIAS_ANNOTATION, MOST_FALLBACKS};
use crate::weight;

/// Bytes of memory that all labels of a cluster may take. Of more, none is kept.
pub const HEAVIEST_LABELS: usize = 64 << 10;

/// Bytes of the alias. A longer one is not kept.
const LONGEST_ALIAS: usize = 1 << 10;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    creation_timestamp: Option<String>,
    labels: Texts,
    annotations: Alias,
}

/// All texts, or none of them.
#[derive(Default)]
struct Texts {
    texts: BTreeMap<String, String>,
    are_cut: bool,
}

/// The only annotation that is shown.
#[derive(Default)]
struct Alias(Option<String>);

pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HubMeta, D::Error> {
    let read = Metadata::deserialize(deserializer)?;
    let Metadata { name, uid, resource_version, creation_timestamp, labels, annotations } = read;
    let annotations = annotations.0.map(|alias| (ALIAS_ANNOTATION.to_owned(), alias)).into_iter().collect();
    let (labels, labels_are_cut) = (labels.texts, labels.are_cut);
    Ok(HubMeta { name, uid, resource_version, creation_timestamp, labels, annotations, labels_are_cut })
}

/// The first address and its fall-backs.
pub(super) fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ClientConfig>, D::Error> {
    Kept { most: 1 + MOST_FALLBACKS, counts: |_| true, kind: PhantomData }.deserialize(deserializer)
}

/// The one condition that is read.
pub(super) fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let counts = |condition: &Condition| condition.r#type == AVAILABLE;
    Kept { most: 1, counts, kind: PhantomData }.deserialize(deserializer)
}

/// Reads a list, and keeps the first elements of it that count.
struct Kept<T> {
    most: usize,
    counts: fn(&T) -> bool,
    kind: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Kept<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Kept<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or null")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.most {
            let Some(element) = list.next_element::<T>()? else { return Ok(kept) };
            kept.extend(Some(element).filter(self.counts));
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadTexts)
    }
}

struct ReadTexts;

impl<'de> Visitor<'de> for ReadTexts {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts by their names, or null")
    }

    fn visit_unit<E>(self) -> Result<Texts, E> {
        Ok(Texts::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
        let (mut texts, mut weighs) = (BTreeMap::new(), 0);
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            weighs += weight::of_text(&key, &value);
            if weighs > HEAVIEST_LABELS {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(Texts { texts: BTreeMap::new(), are_cut: true });
            }
            texts.insert(key, value);
        }
        Ok(Texts { texts, are_cut: false })
    }
}

impl<'de> Deserialize<'de> for Alias {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadAlias)
    }
}

struct ReadAlias;

impl<'de> Visitor<'de> for ReadAlias {
    type Value = Alias;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts by their names, or null")
    }

    fn visit_unit<E>(self) -> Result<Alias, E> {
        Ok(Alias(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Alias, A::Error> {
        let mut alias = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == ALIAS_ANNOTATION {
                alias = Some(map.next_value::<String>()?).filter(|alias| alias.len() <= LONGEST_ALIAS);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Alias(alias))
    }
}
