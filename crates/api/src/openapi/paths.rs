//! The operations of what discovery advertises, from the same table.

use serde_json::{Map, Value, json};

use super::Api;
use super::schema::{group_version_kind, reference};
use crate::discovery::{Resource, Subresource};

/// One operation.
struct Operation<'a> {
    method: &'static str,
    /// `x-kubernetes-action`.
    action: &'static str,
    /// `x-kubernetes-group-version-kind`.
    kind: &'a str,
    /// The response's schema. `None` for any response of a member.
    answer: Option<String>,
    what: String,
}

pub(super) fn all(api: &Api) -> Value {
    let mut paths = Map::new();
    for resource in api.group.resources {
        let collection = format!("/apis/{}/{}", api.group.api_version, resource.plural);
        let object = format!("{collection}/{{name}}");
        if resource.verbs.contains(&"list") {
            paths.insert(collection, list(api, resource));
        }
        if resource.verbs.contains(&"get") {
            paths.insert(object.clone(), object_of(api, resource));
        }
        for subresource in resource.subresources {
            let path = format!("{object}/{}", subresource.name);
            if subresource.name == "proxy" {
                paths.insert(format!("{path}/{{path}}"), proxy(api, resource, subresource, true));
                paths.insert(path, proxy(api, resource, subresource, false));
            } else {
                paths.insert(path, written(api, resource, subresource));
            }
        }
    }
    Value::Object(paths)
}

fn list(api: &Api, resource: &Resource) -> Value {
    let list = format!("{}List", resource.kind);
    let watches = if resource.verbs.contains(&"watch") { WATCH_PARAMETERS } else { &[] };
    let parameters = LIST_PARAMETERS.iter().chain(watches);
    let what = format!("list {} objects", resource.kind);
    let operation = Operation { method: "get", action: "list", kind: resource.kind, answer: Some(list), what };
    let mut path = json!({
        "get": operation.to_json(api, ""),
        "parameters": parameters.map(|(name, form, text)| parameter(name, "query", form, text)).collect::<Vec<_>>(),
    });
    if resource.verbs.contains(&"create") {
        path["post"] = write(api, resource, "post", "create");
    }
    path
}

fn object_of(api: &Api, resource: &Resource) -> Value {
    let answer = Some(resource.kind.to_owned());
    let what = format!("read a {}", resource.kind);
    let operation = Operation { method: "get", action: "get", kind: resource.kind, answer, what };
    let mut path = json!({ "get": operation.to_json(api, ""), "parameters": [name(resource)] });
    for (verb, method) in [("update", "put"), ("patch", "patch"), ("delete", "delete")] {
        if resource.verbs.contains(&verb) {
            path[method] = write(api, resource, method, verb);
        }
    }
    path
}

/// A write of an object. From the parameter `fieldValidation`, kubectl knows that the server checks
/// the fields.
fn write(api: &Api, resource: &Resource, method: &'static str, verb: &'static str) -> Value {
    let answer = Some(resource.kind.to_owned());
    let what = format!("{verb} a {}", resource.kind);
    let action = if verb == "update" { "put" } else { verb };
    let mut operation =
        Operation { method, action: if verb == "create" { "post" } else { action }, kind: resource.kind, answer, what }
            .to_json(api, "");
    with_body(api, &mut operation, method, resource.kind);
    let parameters = WRITE_PARAMETERS.iter().filter(|(name, ..)| verb != "delete" || *name == "dryRun");
    operation["parameters"] =
        parameters.map(|(name, form, text)| parameter(name, "query", form, text)).collect::<Vec<_>>().into();
    operation
}

fn with_body(api: &Api, operation: &mut Value, method: &str, kind: &str) {
    if let Some(types) = body_types(method) {
        let schema = if method == "patch" { json!({ "type": "object" }) } else { reference(api, kind) };
        let content: Map<_, _> = types.iter().map(|one| ((*one).to_owned(), json!({ "schema": schema }))).collect();
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
}

/// A subresource with verbs like those of an object.
fn written(api: &Api, resource: &Resource, subresource: &Subresource) -> Value {
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
            Operation { method, action, kind: subresource.kind, answer, what }.to_json(api, subresource.name);
        with_body(api, &mut operation, method, subresource.kind);
        path.insert(method.to_owned(), operation);
    }
    Value::Object(path)
}

fn body_types(method: &str) -> Option<&'static [&'static str]> {
    match method {
        "post" | "put" => Some(&["application/json"]),
        "patch" => Some(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ]),
        _ => None,
    }
}

fn proxy(api: &Api, resource: &Resource, subresource: &Subresource, with_path: bool) -> Value {
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
        path.insert(method.to_owned(), operation.to_json(api, if with_path { "ProxyWithPath" } else { "Proxy" }));
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

const WRITE_PARAMETERS: &[Parameter] = &[
    ("dryRun", "string", "All: nothing is written"),
    ("fieldManager", "string", "who writes, for the managed fields of the Secret"),
    ("fieldValidation", "string", "what is done about unknown fields: Ignore, Warn or Strict"),
];

// === impl Operation ===

impl Operation<'_> {
    /// `suffix` distinguishes the ids of operations on the same kind.
    fn to_json(&self, api: &Api, suffix: &str) -> Value {
        let id = format!("{}{}{}", self.id_verb(), api.id, self.kind);
        let (media_type, schema) = match &self.answer {
            Some(name) => ("application/json", reference(api, name)),
            None => ("*/*", json!({ "type": "string" })),
        };
        json!({
            "operationId": id + &capitalised(suffix),
            "description": self.what,
            "tags": [api.tag],
            "responses": { "200": { "description": "OK", "content": { media_type: { "schema": schema } } } },
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": group_version_kind(api, self.kind),
        })
    }

    fn id_verb(&self) -> String {
        match self.action {
            "get" => "read".to_owned(),
            "put" => "replace".to_owned(),
            "post" => "create".to_owned(),
            "connect" => format!("connect{}", capitalised(self.method)),
            other => other.to_owned(),
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + characters.as_str())
}
