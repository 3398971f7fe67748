//! Single values of objects, and answers in another form than an object.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::StatusCode;
use serde_json::Value;

use super::line::Line;
use super::{JSON, Objects};
use crate::control_plane::ApiServer;

/// The form of the answers that kubectl prints.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

// === impl ApiServer ===

impl ApiServer {
    /// Like `kubectl get --raw`, for paths that answer with JSON.
    pub fn raw(&self, path: &str) -> Result<Value> {
        self.answer(path, JSON)
    }

    /// The table that `kubectl get` prints of what is at `path`.
    pub fn table(&self, path: &str) -> Result<Value> {
        self.answer(path, TABLE)
    }

    /// An error unless the server's discovery has the resource, `RESOURCE.GROUP`.
    pub fn serves(&self, resource: &str) -> Result<()> {
        Objects::of(self).called(resource).map(drop)
    }

    /// A field, by its JSON pointer, of an object that must exist; null if it has no such field.
    pub fn field(&self, line: &str, pointer: &str) -> Result<Value> {
        let object = self.read(line)?;
        ensure!(!object.is_null(), "there is no {line}");
        Ok(object.pointer(pointer).cloned().unwrap_or_default())
    }

    /// The same as text; empty if it has no such field.
    pub fn text(&self, line: &str, pointer: &str) -> Result<String> {
        Ok(match self.field(line, pointer)? {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    /// What the Secret `NAME -n NAMESPACE` has under `key`, decoded.
    pub fn secret(&self, line: &str, key: &str) -> Result<String> {
        let data = self.field(&format!("secret {line}"), "/data")?;
        let text = data[key].as_str().with_context(|| format!("the Secret {line} has no {key}"))?;
        Ok(String::from_utf8(BASE64.decode(text)?)?)
    }

    /// What the server has of a manifest's object, which is in `namespace` unless it names another;
    /// null if there is no such object.
    pub fn known(&self, manifest: &Value, namespace: &str) -> Result<Value> {
        let objects = Objects::of(self);
        let metadata = &manifest["metadata"];
        let name = metadata["name"].as_str().with_context(|| format!("no name: {manifest}"))?;
        let namespace = metadata["namespace"].as_str().unwrap_or(namespace);
        objects.get(&objects.resource_of(manifest)?.path(Some(namespace), Some(name)))
    }

    /// An error unless all objects that the line names exist.
    pub fn present(&self, line: &str) -> Result<()> {
        let read = Line::parse(line)?;
        ensure!(!read.names.is_empty(), "which ones? {line}");
        let found = Objects::of(self).found(&read)?.len();
        ensure!(found == read.kinds.len() * read.names.len(), "there are {found} of {line}");
        Ok(())
    }

    /// On a connection of its own: the pool sends a read again if its connection ends, and of some
    /// of these none may fail (`load::beside`).
    fn answer(&self, path: &str, form: &str) -> Result<Value> {
        let answer = self.administrator().client().get(path, &[("accept", form)])?;
        answer.expect(StatusCode::OK).with_context(|| path.to_owned())?.json()
    }
}
