//! Lists, and reads and writes of single objects.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::super::query::Query;
use super::super::refusal::{Refusal, json_response, refuse};
use super::super::resource::Resource;
use super::super::store::Key;
use super::{Answer, Hub, parse};
use crate::merge::merge;
use crate::server::Body;

impl Hub {
    pub(super) fn list(&self, resource: Resource, query: &Query) -> Response<Body> {
        let (version, objects) = self.store.list(resource);
        let after = query.continue_after.as_deref().map(|token| token.split_once('/').unwrap_or(("", token)));
        let mut wanted = objects
            .into_iter()
            .filter(|(_, object)| query.filter.matches(object))
            .filter(|(key, _)| after.is_none_or(|after| (key.namespace.as_str(), key.name.as_str()) > after))
            .peekable();
        let (mut items, mut metadata) = (Vec::new(), json!({"resourceVersion": version.to_string()}));
        while let Some((key, mut object)) = wanted.next() {
            // Items of a list do not repeat their type.
            object.as_object_mut().map(|fields| (fields.remove("kind"), fields.remove("apiVersion")));
            items.push(object);
            if query.limit == Some(items.len()) && wanted.peek().is_some() {
                metadata["continue"] = format!("{}/{}", key.namespace, key.name).into();
                break;
            }
        }
        let kind = format!("{}List", resource.kind());
        let list = json!({"kind": kind, "apiVersion": resource.api_version(), "metadata": metadata, "items": items});
        json_response(200, &list)
    }

    pub(super) fn get(&self, key: &Key) -> Answer {
        self.store.get(key).map(|object| json_response(200, &object)).ok_or_else(|| not_found(key))
    }

    pub(super) fn create(&self, resource: Resource, namespace: Option<String>, body: &Bytes) -> Answer {
        let mut object = parse(body)?;
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = Key::new(resource, &text("namespace"), &text("name"));
        if key.name.is_empty() || (resource.namespaced() && key.namespace.is_empty()) {
            return Err(refuse(422, "name or namespace is missing"));
        }
        if self.store.get(&key).is_some() {
            return Err(refuse(409, format!("{} \"{}\" already exists", resource.plural(), key.name)));
        }
        self.store.put(resource, object);
        self.get(&key).map(|mut response| {
            *response.status_mut() = StatusCode::CREATED;
            response
        })
    }

    /// `dry`: only returns what the object would be.
    pub(super) fn write(&self, method: &Method, key: &Key, body: &Bytes, dry: bool) -> Answer {
        let mut object = self.store.get(key).ok_or_else(|| not_found(key))?;
        match *method {
            Method::DELETE if dry => return Ok(json_response(200, &object)),
            Method::DELETE => return Ok(json_response(200, &self.store.delete(key).unwrap_or(object))),
            Method::PUT => {
                let sent = parse(body)?;
                check_version(&object, &sent)?;
                object = sent;
            }
            Method::PATCH => {
                let sent = parse(body)?;
                if !sent.is_object() {
                    return Err(refuse(415, "this hub merges patches (RFC 7396), whatever their media type says"));
                }
                check_version(&object, &sent)?;
                merge(&mut object, sent);
            }
            _ => return Err(refuse(405, "the server does not allow this method on the requested resource")),
        }
        object["metadata"]["name"] = key.name.clone().into();
        if key.resource.namespaced() {
            object["metadata"]["namespace"] = key.namespace.clone().into();
        }
        if dry {
            return Ok(json_response(200, &object));
        }
        self.store.put(key.resource, object);
        self.get(key)
    }
}

fn check_version(current: &Value, sent: &Value) -> Result<(), Refusal> {
    match sent["metadata"]["resourceVersion"].as_str() {
        Some(version) if current["metadata"]["resourceVersion"].as_str() != Some(version) => Err(refuse(
            409,
            "the object has been modified; please apply your changes to the latest version and try again",
        )),
        _ => Ok(()),
    }
}

fn not_found(key: &Key) -> Refusal {
    refuse(404, format!("{} \"{}\" not found", key.resource.plural(), key.name))
}
