//! An object for repeated look-ups: packed, so that a look-up reads few places of memory. A look-up
//! in `serde_json`'s maps reads the texts of a tree on the way down.

use serde_json::{Number, Value as Json};

use crate::labels::find;

/// A value of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    Text(Box<str>),
    List(Box<[Tree]>),
    /// Sorted by name.
    Map(Box<[Entry]>),
}

pub type Entry = (Box<str>, Tree);

// === impl Tree ===

impl Tree {
    /// The entries of a map; any other value has none.
    pub fn entries(&self) -> &[Entry] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    /// The value of that name in a map.
    pub fn get(&self, name: &str) -> Option<&Self> {
        get(self.entries(), name)
    }
}

/// The value of that name.
pub fn get<'e>(entries: &'e [Entry], name: &str) -> Option<&'e Tree> {
    find(entries, |(name, _)| name, name).map(|(_, value)| value)
}

impl From<Json> for Tree {
    fn from(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(is_true) => Self::Bool(is_true),
            Json::Number(number) => Self::Number(number),
            Json::String(text) => Self::Text(text.into()),
            Json::Array(values) => Self::List(values.into_iter().map(Self::from).collect()),
            Json::Object(entries) => {
                Self::Map(entries.into_iter().map(|(name, value)| (name.into(), Self::from(value))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_has_what_the_object_had_and_in_order() {
        let tree = Tree::from(json!({"b": {"a": [1, null, "x"]}, "a": true}));
        let names: Vec<&str> = tree.entries().iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a", "b"]);
        let list = tree.get("b").and_then(|b| b.get("a"));
        assert_eq!(list, Some(&Tree::from(json!([1, null, "x"]))));
        assert!(tree.get("c").is_none() && list.is_some_and(|list| list.entries().is_empty()));
    }
}
