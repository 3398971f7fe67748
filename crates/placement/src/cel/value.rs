//! Values during an evaluation. Those of the input are borrowed from it.

mod compare;
mod url;

pub use self::url::Url;

use std::ops::Deref;
use std::rc::Rc;

use ipnet::IpNet;
use serde_json::{Number, Value as Json};
use time::{Duration, OffsetDateTime};

use super::meter::{Failure, Meter};
use super::types::Type;
use crate::quantity::Quantity;
use crate::tree::{self, Entry, Tree};

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

#[derive(Debug, Clone)]
pub enum List<'a> {
    Json(&'a [Json]),
    Tree(&'a [Tree]),
    /// With its [`Value::depth`].
    Built(Rc<[Value<'a>]>, usize),
}

#[derive(Debug, Clone)]
pub enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>),
    Tree(&'a [Entry]),
    /// With its [`Value::depth`].
    Built(Rc<[(Value<'a>, Value<'a>)]>, usize),
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

// === impl List ===

impl<'a> List<'a> {
    pub fn built(values: Vec<Value<'a>>) -> Self {
        let depth = values.iter().map(Value::depth).max();
        Self::Built(values.into(), 1 + depth.unwrap_or(0))
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Json(values) => values.len(),
            Self::Tree(values) => values.len(),
            Self::Built(values, _) => values.len(),
        }
    }

    pub fn get(&self, at: usize) -> Option<Value<'a>> {
        match self {
            Self::Json(values) => values.get(at).map(Value::from),
            Self::Tree(values) => values.get(at).map(Value::from),
            Self::Built(values, _) => values.get(at).cloned(),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + ExactSizeIterator {
        (0..self.len()).map(|at| self.get(at).unwrap_or(Value::Null))
    }
}

// === impl Map ===

impl<'a> Map<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Json(entries) => entries.len(),
            Self::Tree(entries) => entries.len(),
            Self::Built(entries, _) => entries.len(),
        }
    }

    /// The value of a field, that is, of a key that is a string.
    pub fn field(&self, name: &str, meter: &mut Meter) -> Result<Option<Value<'a>>, Failure> {
        match self {
            Self::Json(entries) => Ok(entries.get(name).map(Value::from)),
            Self::Tree(entries) => Ok(tree::get(entries, name).map(Value::from)),
            Self::Built(entries, _) => {
                meter.charge(entries.len())?;
                let is_it = |key: &Value<'_>| matches!(key, Value::Text(text) if **text == *name);
                Ok(entries.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value.clone()))
            }
        }
    }

    pub fn get(&self, key: &Value<'a>, meter: &mut Meter) -> Result<Option<Value<'a>>, Failure> {
        match (self, key) {
            (_, Value::Text(name)) => {
                meter.traverse(name.len())?;
                self.field(name, meter)
            }
            (Self::Json(_) | Self::Tree(_), _) => Ok(None),
            (Self::Built(entries, _), _) => {
                for (candidate, value) in entries.iter() {
                    if candidate.equals(key, meter)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json(entries) => entries.keys().map(|key| Value::from(key.as_str())).collect(),
            Self::Tree(entries) => entries.iter().map(|(key, _)| Value::from(&**key)).collect(),
            Self::Built(entries, _) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    pub fn values(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json(entries) => entries.values().map(Value::from).collect(),
            Self::Tree(entries) => entries.iter().map(|(_, value)| Value::from(value)).collect(),
            Self::Built(entries, _) => entries.iter().map(|(_, value)| value.clone()).collect(),
        }
    }
}
