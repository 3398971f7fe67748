//! What a path finds in an object.

use serde_json::Value as Json;

use super::Values;
use crate::fields::weight;
use crate::json_path::comparison::Basic;
use crate::json_path::parser::Node;

/// A value to which a path leads: of the object, or a literal in the path itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found<'j> {
    Json(&'j Json),
    Literal(&'j Node),
}

// === impl Found ===

impl<'j> Found<'j> {
    /// The value, if it is part of the object.
    pub fn json(&self) -> Option<&'j Json> {
        match self {
            Self::Json(value) => Some(value),
            Self::Literal(_) => None,
        }
    }

    pub fn basic(&self) -> Option<Basic<'j>> {
        match self {
            Self::Json(Json::Bool(value)) | Self::Literal(Node::Bool(value)) => Some(Basic::Bool(*value)),
            Self::Json(Json::String(text)) | Self::Literal(Node::Text(text)) => Some(Basic::Text(text)),
            Self::Json(Json::Number(number)) => match number.as_i64() {
                Some(whole) => Some(Basic::Int(whole)),
                None => number.as_f64().map(Basic::Float),
            },
            Self::Literal(Node::Int(value)) => Some(Basic::Int(*value)),
            Self::Literal(Node::Float(value)) => Some(Basic::Float(*value)),
            _ => None,
        }
    }

    /// The cost of comparing it.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Json(value) if !value.is_array() && !value.is_object() => weight(value),
            _ => 1,
        }
    }

    /// How many children it has.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Json(Json::Array(values)) => values.len(),
            Self::Json(Json::Object(entries)) => entries.len(),
            _ => 0,
        }
    }

    pub(super) fn children(&self) -> Values<'j> {
        match self {
            Self::Json(Json::Array(values)) => values.iter().map(Found::Json).collect(),
            Self::Json(Json::Object(entries)) => entries.values().map(Found::Json).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Json(Json::Null))
    }
}

pub(super) fn type_name(value: &Found<'_>) -> &'static str {
    match value {
        Found::Json(Json::Null) => "null",
        Found::Json(Json::Bool(_)) | Found::Literal(Node::Bool(_)) => "bool",
        Found::Json(Json::Object(_)) => "map",
        Found::Json(Json::Array(_)) => "list",
        Found::Json(Json::String(_)) | Found::Literal(Node::Text(_)) => "string",
        _ => "number",
    }
}
