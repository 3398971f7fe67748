//! Changes that tests make.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::line::{Line, MANAGER};
use super::{JSON, Objects, Resource};
use crate::control_plane::ApiServer;
use crate::http::Response;
use crate::wait;

const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// Time for deleted objects to be gone, and for a kind to be served.
const LIMIT: Duration = Duration::from_mins(1);
/// The kind of a definition.
const KIND: &str = "CustomResourceDefinition";

// === impl ApiServer ===

impl ApiServer {
    /// Like `kubectl apply --server-side`. Afterwards, the kinds that were defined can be used.
    pub fn apply(&self, objects: &[Value]) -> Result<()> {
        Objects::of(self).apply_all(objects, false)
    }

    /// The same with `--force-conflicts`, whichever client changed the fields.
    pub fn force(&self, objects: &[Value]) -> Result<()> {
        Objects::of(self).apply_all(objects, true)
    }

    /// Like [`ApiServer::apply`], for YAML or JSON documents.
    pub fn apply_text(&self, text: &str) -> Result<()> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("not YAML")?;
        self.apply(&documents)
    }

    /// Like `kubectl apply --server-side --subresource=status`.
    pub fn apply_status(&self, object: &Value) -> Result<()> {
        Objects::of(self).apply(object, "/status", false)
    }

    /// Like `kubectl create`.
    pub fn create(&self, objects: &[Value]) -> Result<()> {
        let client = Objects::of(self);
        for object in flat(objects) {
            client.created(object, "")?.expect(StatusCode::CREATED).with_context(|| object.to_string())?;
        }
        Ok(())
    }

    /// The answer to `kubectl create --dry-run=server`, be it a refusal.
    pub fn dry_run(&self, object: &Value) -> Result<Response> {
        Objects::of(self).created(object, "?dryRun=All")
    }

    /// The answer to a request with a body of this content type, be it a refusal.
    pub fn ask(&self, method: &Method, path: &str, kind: &str, body: &Value) -> Result<Response> {
        Objects::of(self).asked(method, path, kind, body)
    }

    /// Like `kubectl replace`, or `kubectl create` if there is no such object: omitted fields are
    /// removed.
    pub fn put(&self, object: &Value) -> Result<()> {
        let client = Objects::of(self);
        let path = client.resource_of(object)?.path(Some(namespace(object)), object["metadata"]["name"].as_str());
        // Other clients may write it meanwhile.
        let answer = wait::until("the latest version", LIMIT, || {
            let known = client.get(&path)?;
            if known.is_null() {
                return Ok(None);
            }
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"].clone();
            let response = client.sent(&Method::PUT, &path, "kubectl-replace", JSON, &object)?;
            ensure!(response.status != StatusCode::CONFLICT, "{}", response.text());
            Ok(Some(response))
        })?;
        match answer {
            Some(response) => response.expect(StatusCode::OK).with_context(|| object.to_string()).map(drop),
            None => self.create(std::slice::from_ref(object)),
        }
    }

    /// Like `kubectl patch LINE --type=merge -p PATCH`, where the line may have
    /// `--subresource=status` and `--field-manager=NAME`. Returns the object.
    pub fn patch(&self, line: &str, patch: &Value) -> Result<Value> {
        let line = Line::with_flags(line, &["--subresource=status", MANAGER])?;
        Objects::of(self).patch(&line, "kubectl-patch", patch)
    }

    /// Like `kubectl annotate --overwrite`.
    pub fn annotate(&self, line: &str) -> Result<()> {
        Objects::of(self).mark(line, "annotations", "kubectl-annotate")
    }

    /// Like `kubectl label --overwrite`.
    pub fn label(&self, line: &str) -> Result<()> {
        Objects::of(self).mark(line, "labels", "kubectl-label")
    }

    /// Like `kubectl delete`: waits until the objects are gone, unless the line has `--wait=false`;
    /// named objects must exist, unless it has `--ignore-not-found`.
    pub fn delete(&self, line: &str) -> Result<()> {
        let line = Line::with_flags(line, &["--all", "--wait=false", "--ignore-not-found"])?;
        let is_of_many = line.has("--all") || line.has_selector();
        ensure!(is_of_many == line.names.is_empty(), "names, or which of many: {line:?}");
        let client = Objects::of(self);
        let mut deleted = Vec::new();
        for kind in &line.kinds {
            let resource = client.called(kind)?;
            let paths = client.paths(&line, &resource)?;
            deleted.extend(paths.into_iter().filter_map(|path| client.deleted(path, &line).transpose()));
        }
        for deleted in deleted {
            let (path, uid) = deleted?;
            let is_gone = || Ok(client.get(&path)?["metadata"]["uid"] != uid);
            if !line.has("--wait=false") {
                wait::until_true(&format!("the end of {path}"), LIMIT, is_gone)?;
            }
        }
        Ok(())
    }
}

// === impl Objects ===

impl Objects<'_> {
    fn apply_all(&self, objects: &[Value], is_forced: bool) -> Result<()> {
        let all = flat(objects);
        all.iter().try_for_each(|object| self.apply(object, "", is_forced))?;
        all.iter().filter(|object| object["kind"] == KIND).try_for_each(|kind| self.wait_served(kind))
    }

    fn created(&self, object: &Value, query: &str) -> Result<Response> {
        let path = self.resource_of(object)?.path(Some(namespace(object)), None) + query;
        self.sent(&Method::POST, &path, "kubectl-create", JSON, object)
    }

    fn apply(&self, object: &Value, subresource: &str, is_forced: bool) -> Result<()> {
        let name = object["metadata"]["name"].as_str().with_context(|| format!("no name: {object}"))?;
        let path = self.resource_of(object)?.path(Some(namespace(object)), Some(name)) + subresource;
        let path = format!("{path}?force={is_forced}");
        let response = self.sent(&Method::PATCH, &path, "kubectl", APPLY_PATCH, object)?;
        ensure!(response.status.is_success(), "{path}: {}: {}", response.status, response.text());
        Ok(())
    }

    fn patch(&self, line: &Line<'_>, manager: &str, patch: &Value) -> Result<Value> {
        let ([kind], [name]) = (line.kinds.as_slice(), line.names.as_slice()) else { bail!("one object: {line:?}") };
        let status = if line.has("--subresource=status") { "/status" } else { "" };
        let path = line.path(&self.called(kind)?, Some(name)) + status;
        let manager = line.manager.unwrap_or(manager);
        self.sent(&Method::PATCH, &path, manager, MERGE_PATCH, patch)?.expect(StatusCode::OK).context(path)?.json()
    }

    fn mark(&self, line: &str, field: &str, manager: &str) -> Result<()> {
        let line = Line::parse(line)?;
        ensure!(!line.marks.is_empty(), "nothing to say: {line:?}");
        let marks: serde_json::Map<String, Value> =
            line.marks.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.patch(&line, manager, &json!({"metadata": {field: marks}})).map(drop)
    }

    /// Sends a write with kubectl's query.
    fn sent(&self, method: &Method, path: &str, manager: &str, kind: &str, body: &Value) -> Result<Response> {
        let mark = if path.contains('?') { '&' } else { '?' };
        self.asked(method, &format!("{path}{mark}fieldManager={manager}&fieldValidation=Strict"), kind, body)
    }

    /// Sends a request and repeats it while the server is not ready for it: a server that prepares
    /// to store a kind asks clients to retry, and kubectl does.
    fn asked(&self, method: &Method, path: &str, kind: &str, body: &Value) -> Result<Response> {
        wait::until("a server that is ready", LIMIT, || {
            let response = self.send(method, path, kind, body)?;
            ensure!(response.status != StatusCode::TOO_MANY_REQUESTS, "{}", response.text());
            Ok(response)
        })
    }

    /// The paths of the existing objects that a line names or selects.
    fn paths(&self, line: &Line<'_>, resource: &Resource) -> Result<Vec<String>> {
        if !line.names.is_empty() {
            return Ok(line.names.iter().map(|name| line.path(resource, Some(name))).collect());
        }
        let list = self.list(&line.path(resource, None))?;
        let path = |object: &Value| {
            let metadata = &object["metadata"];
            resource.path(metadata["namespace"].as_str(), metadata["name"].as_str())
        };
        Ok(list["items"].as_array().into_iter().flatten().map(path).collect())
    }

    /// Deletes the object at `path`; returns the path and the uid.
    fn deleted(&self, path: String, line: &Line<'_>) -> Result<Option<(String, Value)>> {
        let options = json!({"propagationPolicy": "Background"});
        let response = self.send(&Method::DELETE, &path, JSON, &options)?;
        let may_be_gone = line.names.is_empty() || line.has("--ignore-not-found");
        if response.status == StatusCode::NOT_FOUND && may_be_gone {
            return Ok(None);
        }
        ensure!(response.status.is_success(), "{path}: {}: {}", response.status, response.text());
        // The answer is the object if it waits for finalizers, else a Status about it.
        let answer = response.json()?;
        let uid = if answer["kind"] == "Status" { &answer["details"]["uid"] } else { &answer["metadata"]["uid"] };
        ensure!(uid.is_string(), "whose end? {answer}");
        Ok(Some((path, uid.clone())))
    }

    /// Waits until the kind can be used, and discovery lists it.
    fn wait_served(&self, kind: &Value) -> Result<()> {
        let name = kind["metadata"]["name"].as_str().unwrap_or_default();
        self.forget(kind["spec"]["group"].as_str().unwrap_or_default());
        self.server.wait_for(&format!("crd {name}"), "Established", LIMIT)?;
        wait::until(&format!("the kind {name}"), LIMIT, || self.called(name).map(drop))
    }
}

/// Replaces lists by their items.
fn flat(objects: &[Value]) -> Vec<&Value> {
    objects.iter().flat_map(items).collect()
}

fn items(object: &Value) -> &[Value] {
    match object["kind"].as_str() {
        Some("List") => object["items"].as_array().map_or(&[], Vec::as_slice),
        _ => std::slice::from_ref(object),
    }
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or("default")
}
