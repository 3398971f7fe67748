//! Copies items one by one and adds the cluster's mark to their annotations.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{CLUSTER_ANNOTATION, MOST_ITEMS};

/// What a mark adds to an item beside the names of annotation and cluster: keys and punctuation.
const AROUND_MARK: usize = 32;
/// A document that is too short for an item grows by this part of it at least: twice its size would
/// be much beside the budget of a request.
const GROWTH: usize = 8;

/// Reads a list and writes its marked items, separated by commas from all items in `out`.
pub struct Items<'a> {
    pub cluster: &'a str,
    pub is_table: bool,
    pub out: &'a mut Vec<u8>,
    /// Number of items in `out`.
    pub count: &'a mut usize,
}

/// Reads the list's items only.
struct Sequence<'a, 'b>(&'b mut Items<'a>);

/// The level of an object in an item, which decides where the mark goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Row,
    Object,
    Metadata,
    Annotations,
}

/// Copies an object while reading it, without keeping any of it.
struct Copy<'a> {
    level: Level,
    cluster: &'a str,
    out: &'a mut Vec<u8>,
}

/// The object `json` of `cluster`, marked. `None` if it is not an object with metadata.
pub fn marked(cluster: &str, json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(json.len());
    let mut reader = serde_json::Deserializer::from_slice(json);
    Copy { level: Level::Object, cluster, out: &mut out }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(out)
}

// === impl Items ===

impl Items<'_> {
    /// Leaves part of a list in `out` if it fails.
    pub fn read(mut self, json: &[u8]) -> Result<(), serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        reader.deserialize_map(&mut self)?;
        reader.end()
    }

    /// For an item of this many bytes, and its mark.
    fn make_room(&mut self, item: usize) {
        let needed = item + CLUSTER_ANNOTATION.len() + self.cluster.len() + AROUND_MARK;
        if self.out.capacity() - self.out.len() < needed {
            self.out.reserve_exact(needed.max(self.out.len() / GROWTH));
        }
    }
}

impl<'de> Visitor<'de> for &mut Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let wanted = if self.is_table { "rows" } else { "items" };
        while let Some(key) = map.next_key::<&'de RawValue>()? {
            if plain(key) == wanted {
                map.next_value_seed(Sequence(self))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Sequence<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sequence<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self(list) = self;
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            list.make_room(item.get().len());
            if *list.count > 0 {
                list.out.push(b',');
            }
            *list.count += 1;
            if *list.count > MOST_ITEMS {
                return Err(A::Error::custom("too many items"));
            }
            let level = if list.is_table { Level::Row } else { Level::Object };
            Copy { level, cluster: list.cluster, out: list.out }.text(item).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

// === impl Level ===

impl Level {
    /// The level of a member's value, if the mark is below it.
    fn below(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Row, "object") => Some(Self::Object),
            (Self::Object, "metadata") => Some(Self::Metadata),
            (Self::Metadata, "annotations") => Some(Self::Annotations),
            _ => None,
        }
    }
}

// === impl Copy ===

impl Copy<'_> {
    fn text(self, object: &RawValue) -> Result<(), serde_json::Error> {
        self.deserialize(&mut serde_json::Deserializer::from_str(object.get()))
    }

    /// Writes the member's key and value, with the mark below it if it belongs there. Returns
    /// whether it does.
    fn member(&mut self, name: &str, value: &RawValue) -> Result<bool, serde_json::Error> {
        let is_null = value.get() == "null";
        match self.level.below(name) {
            Some(Level::Annotations) if is_null => self.mark(true),
            Some(level) if level != Level::Object || !is_null => {
                Copy { level, cluster: self.cluster, out: self.out }.text(value)?;
            }
            Some(_) | None => {
                self.out.extend_from_slice(value.get().as_bytes());
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the annotation, or an object with only the annotation.
    fn mark(&mut self, is_alone: bool) {
        let annotation = format!("\"{CLUSTER_ANNOTATION}\":\"{}\"", self.cluster);
        let (before, after) = if is_alone { ("{", "}") } else { ("", "") };
        for part in [before, &annotation, after] {
            self.out.extend_from_slice(part.as_bytes());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Copy<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Copy<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.out.push(b'{');
        let (mut is_first, mut is_marked) = (true, false);
        while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            let name = plain(key);
            // The member must not choose the cluster's name.
            if self.level == Level::Annotations && name == CLUSTER_ANNOTATION {
                continue;
            }
            // No API server repeats it, and each would get a mark that is longer than itself.
            if is_marked && self.level.below(&name).is_some() {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            self.out.extend_from_slice(key.get().as_bytes());
            self.out.push(b':');
            is_marked |= self.member(&name, value).map_err(A::Error::custom)?;
        }
        let comma = if is_first { "" } else { "," };
        match self.level {
            Level::Object if !is_marked => return Err(A::Error::missing_field("metadata")),
            Level::Metadata if !is_marked => {
                self.out.extend_from_slice(comma.as_bytes());
                self.out.extend_from_slice(b"\"annotations\":");
                self.mark(true);
            }
            Level::Annotations => {
                self.out.extend_from_slice(comma.as_bytes());
                self.mark(false);
            }
            Level::Row | Level::Object | Level::Metadata => {}
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// A key without quotes and escapes.
fn plain(key: &RawValue) -> Cow<'_, str> {
    let text = key.get();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        _ => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
    }
}
