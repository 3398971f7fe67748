//! The operations on what discovery advertises, made from the same table.

use serde_json::{Map, Value, json};

use super::schema::{group_version_kind, reference};
use crate::discovery::{Resource, Subresource};
use crate::{GROUP, VERSION};

/// One operation: its method, action and what it is about.
struct Operation<'a> {
    method: &'static str,
    /// `x-kubernetes-action`.
    action: &'static str,
    /// `x-kubernetes-group-version-kind`.
    kind: &'a str,
    /// Schema of the answer; `None` for whatever a member answers.
    answer: Option<String>,
    what: String,
}

pub(super) fn all(table: &[Resource]) -> Value {
    let mut paths = Map::new();
    for resource in table {
        let collection = format!("/apis/{GROUP}/{VERSION}/{}", resource.plural);
        let object = format!("{collection}/{{name}}");
        if resource.verbs.contains(&"list") {
            paths.insert(collection, list(resource));
        }
        if resource.verbs.contains(&"get") {
            paths.insert(object.clone(), get(resource));
        }
        for subresource in resource.subresources {
            let path = format!("{object}/{}", subresource.name);
            if subresource.name == "proxy" {
                paths.insert(format!("{path}/{{path}}"), proxy(resource, subresource, true));
                paths.insert(path, proxy(resource, subresource, false));
            } else {
                paths.insert(path, written(resource, subresource));
            }
        }
    }
    Value::Object(paths)
}

fn list(resource: &Resource) -> Value {
    let list = format!("{}List", resource.kind);
    let watches = if resource.verbs.contains(&"watch") { WATCH_PARAMETERS } else { &[] };
    let parameters = LIST_PARAMETERS.iter().chain(watches);
    let what = format!("list {} objects", resource.kind);
    let operation = Operation { method: "get", action: "list", kind: resource.kind, answer: Some(list), what };
    json!({
        "get": operation.to_json(""),
        "parameters": parameters.map(|(name, form, text)| parameter(name, "query", form, text)).collect::<Vec<_>>(),
    })
}

fn get(resource: &Resource) -> Value {
    let answer = Some(resource.kind.to_owned());
    let what = format!("read a {}", resource.kind);
    let operation = Operation { method: "get", action: "get", kind: resource.kind, answer, what };
    json!({ "get": operation.to_json(""), "parameters": [name(resource)] })
}

/// A subresource with the verbs of an object.
fn written(resource: &Resource, subresource: &Subresource) -> Value {
    let mut path = Map::from_iter([("parameters".to_owned(), json!([name(resource)]))]);
    for verb in subresource.verbs {
        let (method, action) = match *verb {
            "get" => ("get", "get"),
            "update" => ("put", "put"),
            "patch" => ("patch", "patch"),
            _ => continue,
        };
        let answer = Some(subresource.kind.to_owned());
        let what = format!("{verb} {} of a {}", subresource.name, resource.kind);
        let mut operation =
            Operation { method, action, kind: subresource.kind, answer, what }.to_json(subresource.name);
        if let Some(types) = body_types(method) {
            let schema = if method == "put" { reference(subresource.kind) } else { json!({ "type": "object" }) };
            let content: Map<_, _> = types.iter().map(|one| ((*one).to_owned(), json!({ "schema": schema }))).collect();
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        path.insert(method.to_owned(), operation);
    }
    Value::Object(path)
}

fn body_types(method: &str) -> Option<&'static [&'static str]> {
    match method {
        "put" => Some(&["application/json"]),
        "patch" => Some(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ]),
        _ => None,
    }
}

fn proxy(resource: &Resource, subresource: &Subresource, with_path: bool) -> Value {
    let mut parameters = vec![name(resource)];
    if with_path {
        parameters.push(parameter("path", "path", "string", "path on the member cluster"));
    }
    let text = "true: the member sees the caller instead of the registered credential";
    parameters.push(parameter("impersonate", "query", "string", text));
    let mut path = Map::from_iter([("parameters".to_owned(), Value::Array(parameters))]);
    for verb in subresource.verbs {
        let method = match *verb {
            "create" => "post",
            "update" => "put",
            "get" | "patch" | "delete" => verb,
            _ => continue,
        };
        let what = format!("connect {} requests to a member cluster", method.to_uppercase());
        let operation = Operation { method, action: "connect", kind: subresource.kind, answer: None, what };
        path.insert(method.to_owned(), operation.to_json(if with_path { "ProxyWithPath" } else { "Proxy" }));
    }
    Value::Object(path)
}

fn name(resource: &Resource) -> Value {
    parameter("name", "path", "string", &format!("name of the {}", resource.kind))
}

fn parameter(name: &str, place: &str, form: &str, text: &str) -> Value {
    let mut parameter = json!({ "name": name, "in": place, "description": text, "schema": { "type": form } });
    if place == "path" {
        parameter["required"] = true.into();
    } else {
        parameter["schema"]["uniqueItems"] = true.into();
    }
    parameter
}

type Parameter = (&'static str, &'static str, &'static str);

const LIST_PARAMETERS: &[Parameter] = &[
    ("labelSelector", "string", "which labels the returned objects must have"),
    ("fieldSelector", "string", "which fields the returned objects must have: metadata.name or metadata.namespace"),
    ("limit", "integer", "how many objects to return at once; may be ignored"),
    ("continue", "string", "continue token of the previous page"),
    ("resourceVersion", "string", "how recent the answer must be, or where a watch begins"),
    ("resourceVersionMatch", "string", "how resourceVersion applies: NotOlderThan or Exact"),
];

const WATCH_PARAMETERS: &[Parameter] = &[
    ("watch", "boolean", "whether to stream changes"),
    (
        "allowWatchBookmarks",
        "boolean",
        "whether the stream may have bookmark events, which carry only a resourceVersion",
    ),
    ("sendInitialEvents", "boolean", "whether the stream begins with the existing objects"),
    ("timeoutSeconds", "integer", "seconds after which the stream ends"),
];

// === impl Operation ===

impl Operation<'_> {
    /// `suffix` keeps the ids of operations on the same kind apart.
    fn to_json(&self, suffix: &str) -> Value {
        let id = format!("{}ClusterV1alpha1{}", self.id_verb(), self.kind);
        let (media_type, schema) = match &self.answer {
            Some(name) => ("application/json", reference(name)),
            None => ("*/*", json!({ "type": "string" })),
        };
        json!({
            "operationId": id + &capitalised(suffix),
            "description": self.what,
            "tags": ["cluster_v1alpha1"],
            "responses": { "200": { "description": "OK", "content": { media_type: { "schema": schema } } } },
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": group_version_kind(self.kind),
        })
    }

    fn id_verb(&self) -> String {
        match self.action {
            "get" => "read".to_owned(),
            "put" => "replace".to_owned(),
            "connect" => format!("connect{}", capitalised(self.method)),
            other => other.to_owned(),
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + characters.as_str())
}
