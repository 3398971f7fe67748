//! Object types as tables, and their conversion to OpenAPI v3.

use serde_json::{Map, Value, json};

use super::Api;

/// An object type.
pub(super) struct Schema {
    /// Last part of the schema's name. Clients show it as the type.
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Whether it is a kind of the API, which has `kind` and `apiVersion`.
    pub(super) is_kind: bool,
    pub(super) fields: &'static [Field],
}

pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) required: bool,
    pub(super) description: &'static str,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Text,
    /// RFC 3339.
    Time,
    /// Base64.
    Bytes,
    Boolean,
    Integer,
    TextMap,
    /// A list of strings.
    Texts,
    /// Any value.
    Open,
    Object(&'static str),
    List(&'static str),
}

/// The schema's name in the document and in every reference. Types of Kubernetes also have our
/// prefix, because we only have some of their fields: tools that merge documents must not take them
/// for the complete types.
pub(super) fn qualified(api: &Api, name: &str) -> String {
    format!("{}.{}.{name}", api.prefix, api.group.version)
}

pub(super) fn reference(api: &Api, name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", qualified(api, name)) })
}

pub(super) fn group_version_kind(api: &Api, kind: &str) -> Value {
    json!({ "group": api.group.name, "version": api.group.version, "kind": kind })
}

// === impl Schema ===

impl Schema {
    pub(super) fn to_json(&self, api: &Api) -> Value {
        let of_kind = if self.is_kind { api.type_fields } else { &[] };
        let fields = || of_kind.iter().chain(self.fields);
        let properties: Map<_, _> = fields().map(|field| (field.name.to_owned(), field.to_json(api))).collect();
        let mut schema = json!({ "type": "object", "description": self.description, "properties": properties });
        let required: Vec<_> = fields().filter(|field| field.required).map(|field| field.name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if self.is_kind {
            schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(api, self.name)]);
        }
        schema
    }
}

pub(super) const TYPE_FIELDS: &[Field] = &[
    Field::new("apiVersion", Form::Text, "Group and version of this object: cluster.core.oam.dev/v1alpha1."),
    Field::new("kind", Form::Text, "The type of this object."),
];

pub(super) const KARMADA_TYPE_FIELDS: &[Field] = &[
    Field::new("apiVersion", Form::Text, "Group and version of this object: cluster.karmada.io/v1alpha1."),
    Field::new("kind", Form::Text, "The type of this object."),
];

// === impl Field ===

impl Field {
    pub(super) const fn new(name: &'static str, form: Form, description: &'static str) -> Self {
        Self { name, form, required: false, description }
    }

    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    fn to_json(&self, api: &Api) -> Value {
        let mut schema = match self.form {
            Form::Text => json!({ "type": "string" }),
            Form::Time => json!({ "type": "string", "format": "date-time", "nullable": true }),
            Form::Bytes => json!({ "type": "string", "format": "byte" }),
            Form::Boolean => json!({ "type": "boolean" }),
            Form::Integer => json!({ "type": "integer", "format": "int64" }),
            Form::TextMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            Form::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Form::Open => json!({ "x-kubernetes-preserve-unknown-fields": true }),
            // A bare reference could not have a description.
            Form::Object(name) => json!({ "allOf": [reference(api, name)] }),
            Form::List(name) => json!({ "type": "array", "items": reference(api, name) }),
        };
        schema["description"] = self.description.into();
        schema
    }
}
