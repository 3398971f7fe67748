//! Values during an evaluation. Those of the input are borrowed from it.

mod collections;
mod compare;
mod url;

pub use self::collections::{List, Map};
pub use self::url::Url;

use std::ops::Deref;
use std::rc::Rc;

use ipnet::IpNet;
use serde_json::{Number, Value as Json};
use time::{Duration, OffsetDateTime};

use super::types::Type;
use crate::quantity::Quantity;
use crate::tree::Tree;

#[derive(Debug, Clone)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    List(List<'a>),
    Map(Map<'a>),
    Duration(Duration),
    Timestamp(OffsetDateTime),
    Type(Type),
    Optional(Option<Rc<Value<'a>>>),
    Quantity(Rc<Quantity>),
    Semver(Rc<semver::Version>),
    Ip(std::net::IpAddr),
    Cidr(IpNet),
    Url(Rc<Url>),
    Format(&'static Format),
}

/// A named format of strings.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    pub is_valid: fn(&str) -> bool,
    /// The message for texts of another format.
    pub why: &'static str,
}

#[derive(Debug, Clone)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

// === impl Value ===

impl Value<'_> {
    pub fn kind(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::Text,
            Self::Bytes(_) => Type::Bytes,
            Self::List(_) => Type::List,
            Self::Map(_) => Type::Map,
            Self::Duration(_) => Type::Duration,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Type(_) => Type::Type,
            Self::Optional(_) => Type::Optional,
            Self::Quantity(_) => Type::Quantity,
            Self::Semver(_) => Type::Semver,
            Self::Ip(_) => Type::Ip,
            Self::Cidr(_) => Type::Cidr,
            Self::Url(_) => Type::Url,
            Self::Format(_) => Type::Format,
        }
    }

    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Shared(text.into()))
    }

    pub fn list(values: Vec<Self>) -> Self {
        Self::List(List::built(values))
    }

    pub fn map(entries: Vec<(Self, Self)>) -> Self {
        let depth = entries.iter().map(|(key, value)| key.depth().max(value.depth())).max();
        Self::Map(Map::Built(entries.into(), 1 + depth.unwrap_or(0)))
    }

    pub fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    /// Number of levels of lists, maps and optionals that the evaluation built around each other:
    /// walking a value, and dropping it too, takes a stack frame for each. The parser of the input
    /// bounds the levels of the input.
    pub fn depth(&self) -> usize {
        match self {
            Self::List(List::Built(_, depth)) | Self::Map(Map::Built(_, depth)) => *depth,
            Self::List(_) | Self::Map(_) => 1,
            Self::Optional(Some(inside)) => 1 + inside.depth(),
            _ => 0,
        }
    }

    /// A length, which always fits.
    pub fn size(size: usize) -> Self {
        Self::Int(i64::try_from(size).unwrap_or(i64::MAX))
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    /// Integers stay integers, as in objects that the API server sends.
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(is_true) => Self::Bool(*is_true),
            Json::Number(number) => Self::from(number),
            Json::String(text) => Self::from(text.as_str()),
            Json::Array(values) => Self::List(List::Json(values)),
            Json::Object(entries) => Self::Map(Map::Json(entries)),
        }
    }
}

impl<'a> From<&'a Tree> for Value<'a> {
    fn from(tree: &'a Tree) -> Self {
        match tree {
            Tree::Null => Self::Null,
            Tree::Bool(is_true) => Self::Bool(*is_true),
            Tree::Number(number) => Self::from(number),
            Tree::Text(text) => Self::from(&**text),
            Tree::List(values) => Self::List(List::Tree(values)),
            Tree::Map(entries) => Self::Map(Map::Tree(entries)),
        }
    }
}

impl From<&Number> for Value<'_> {
    fn from(number: &Number) -> Self {
        let whole = number.as_i64().map(Self::Int).or_else(|| number.as_u64().map(Self::Uint));
        whole.or_else(|| number.as_f64().map(Self::Double)).unwrap_or(Self::Null)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Text::Borrowed(text))
    }
}

// === impl Text ===

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}
