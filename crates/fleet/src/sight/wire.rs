//! Reads lists and lines of watches without holding their objects: a list of one MiB may have
//! 300,000 empty objects, and each takes 350 bytes as kube's metadata.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most bytes kept of a version or a name. No server's versions have more than 20, and no name has
/// more than 253 (RFC 1123).
const LONGEST: usize = 253;
/// Longest continue token, in bytes: a key of etcd, and some more.
const LONGEST_NEXT: usize = 8 << 10;

/// The metadata of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// Empty if the server sends none.
    pub version: String,
    pub next: Option<String>,
}

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// The object exists: its name and version.
    There(&'a str, &'a str),
    Gone(&'a str, &'a str),
    /// All changes up to this version were sent.
    Bookmark(&'a str),
    /// The watch ends with this HTTP code.
    Failed(u16),
    /// An event of an unknown type.
    Other,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    r#continue: Cow<'a, str>,
}

/// An object, or a Status. All its other fields are skipped.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
    code: u16,
}

/// A line of a watch.
#[derive(Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    object: Object<'a>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Metadata,
    Items,
    #[serde(other)]
    Other,
}

struct Whole<'t, T>(&'t mut T);
struct Items<'t, T>(&'t mut T);

/// Reads a page, and passes the name and version of each object to `take`. The server decides how
/// many they are: it may not know of limits.
///
/// # Errors
///
/// Fails if the page is not a list, or if its continue token is too long.
pub fn page(bytes: &[u8], take: &mut impl FnMut(&str, &str)) -> serde_json::Result<Page> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let page = Whole(take).deserialize(&mut reader)?;
    reader.end().map(|()| page)
}

/// Cuts `text` to the bytes that are kept of a name or a version.
pub fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

// === impl Event ===

impl<'a> Event<'a> {
    pub fn read(line: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line)
    }

    pub fn said(&self) -> Said<'_> {
        let (name, version) = (cut(&self.object.metadata.name), cut(&self.object.metadata.resource_version));
        match &*self.kind {
            "ADDED" | "MODIFIED" => Said::There(name, version),
            "DELETED" => Said::Gone(name, version),
            "BOOKMARK" => Said::Bookmark(version),
            "ERROR" => Said::Failed(self.object.code),
            _ => Said::Other,
        }
    }
}

// === impl Page ===

impl Page {
    fn read<E: serde::de::Error>(meta: &Meta<'_>) -> Result<Self, E> {
        if meta.r#continue.len() > LONGEST_NEXT {
            return Err(E::custom("a list goes on with more than 8 KiB"));
        }
        let next = Some(meta.r#continue.clone().into_owned()).filter(|next| !next.is_empty());
        Ok(Self { version: cut(&meta.resource_version).to_owned(), next })
    }
}

// === impl Whole ===

impl<'de, T: FnMut(&str, &str)> DeserializeSeed<'de> for Whole<'_, T> {
    type Value = Page;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Page, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: FnMut(&str, &str)> Visitor<'de> for Whole<'_, T> {
    type Value = Page;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page, A::Error> {
        let mut meta = None;
        let mut has_items = false;
        while let Some(key) = map.next_key()? {
            match key {
                Key::Metadata => meta = Some(Page::read(&map.next_value::<Meta<'_>>()?)?),
                Key::Items => {
                    map.next_value_seed(Items(&mut *self.0))?;
                    has_items = true;
                }
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if has_items {
            meta.ok_or_else(|| A::Error::missing_field("metadata"))
        } else {
            Err(A::Error::missing_field("items"))
        }
    }
}

// === impl Items ===

impl<'de, T: FnMut(&str, &str)> DeserializeSeed<'de> for Items<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, T: FnMut(&str, &str)> Visitor<'de> for Items<'_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("objects")
    }

    /// Go writes a nil slice as `null`.
    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(object) = seq.next_element_seed(PhantomData::<Object<'_>>)? {
            (self.0)(cut(&object.metadata.name), cut(&object.metadata.resource_version));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> serde_json::Result<(Page, Vec<(String, String)>)> {
        let mut all = Vec::new();
        let page = page(text.as_bytes(), &mut |name, version| all.push((name.to_owned(), version.to_owned())))?;
        Ok((page, all))
    }

    #[test]
    fn a_page_tells_names_and_versions_and_where_it_goes_on() {
        let text = r#"{"kind":"X","items":[{"kind":"Y","metadata":{"name":"a","resourceVersion":"7","uid":"u"},
            "spec":{"metadata":{"name":"no"}}},{},{"metadata":{"name":"b\u00e9","labels":{}}}],"extra":[[1]],
            "metadata":{"resourceVersion":"9","continue":"abc","remainingItemCount":3}}"#;
        let (page, all) = read(text).unwrap();
        assert_eq!(page, Page { version: "9".into(), next: Some("abc".into()) });
        let names: Vec<_> = all.iter().map(|(name, version)| (name.as_str(), version.as_str())).collect();
        assert_eq!(names, [("a", "7"), ("", ""), ("bé", "")]);
        let (page, all) = read(r#"{"items":null,"metadata":{"continue":""}}"#).unwrap();
        assert_eq!((page.next, all.len()), (None, 0));
    }

    #[test]
    fn what_is_no_list_is_none() {
        for text in ["", "[]", "{}", r#"{"items":[]}"#, r#"{"metadata":{}}"#, r#"{"items":{},"metadata":{}}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(r#"{"items":[],"metadata":{}}, {}"#).is_err());
        let long = "x".repeat(LONGEST_NEXT + 1);
        assert!(read(&format!(r#"{{"items":[],"metadata":{{"continue":"{long}"}}}}"#)).is_err());
    }

    #[test]
    fn of_long_names_and_versions_the_beginning_is_kept() {
        let long = "é".repeat(LONGEST);
        let item = format!(r#"{{"metadata":{{"name":"{long}","resourceVersion":"{long}"}}}}"#);
        let (_, all) = read(&format!(r#"{{"items":[{item}],"metadata":{{}}}}"#)).unwrap();
        assert!(all[0].0.len() <= LONGEST && all[0].1.len() <= LONGEST);
        let text = format!(r#"{{"object":{item},"type":"ADDED"}}"#);
        let line = Event::read(text.as_bytes()).unwrap();
        assert!(matches!(line.said(), Said::There(name, version) if name.len() <= LONGEST && version.len() <= LONGEST));
    }

    #[test]
    fn a_line_says_one_thing() {
        let said = |kind: &str| {
            let object = r#"{"metadata":{"name":"a","resourceVersion":"7"},"code":410,"data":{"x":"y"}}"#;
            let text = format!(r#"{{"object":{object},"type":"{kind}"}}"#);
            format!("{:?}", Event::read(text.as_bytes()).unwrap().said())
        };
        assert_eq!(said("MODIFIED"), r#"There("a", "7")"#);
        assert_eq!(said("DELETED"), r#"Gone("a", "7")"#);
        assert_eq!(said("BOOKMARK"), r#"Bookmark("7")"#);
        assert_eq!(said("ERROR"), "Failed(410)");
        assert_eq!(said("NEW"), "Other");
        assert!(Event::read(b"{\"kind\":\"Status\"}").is_err());
    }
}
