//! Lists and maps: JSON of an object, or what an expression made.

use std::rc::Rc;

use serde_json::Value as Json;

use super::Value;
use crate::cel::meter::{Failure, Meter};
use crate::tree::{self, Entry, Tree};

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
