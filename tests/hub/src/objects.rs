//! Reads and writes objects without kubectl, for tests that do not test kubectl itself: the start
//! of a kubectl costs thirty times what its request does, and took more than half of these tests'
//! machine time. Commands that users type are tested with kubectl.

mod accounts;
mod changes;
mod everything;
mod fields;
mod line;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::line::Line;
use crate::control_plane::ApiServer;
use crate::http::{Pool, Response};
use crate::wait;

/// The form of aggregated discovery that all servers of these tests have.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const JSON: &str = "application/json";

/// Paths of resources and whether they are namespaced, by server and by the name used for them.
static RESOURCES: LazyLock<Mutex<HashMap<(SocketAddr, String), Resource>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Resource {
    /// Group and version.
    prefix: String,
    plural: String,
    is_namespaced: bool,
}

/// Requests to one server as a member of `system:masters`.
struct Objects<'a> {
    server: &'a ApiServer,
    client: &'a Pool,
}

// === impl ApiServer ===

impl ApiServer {
    /// The object, or the list, that `kubectl get LINE -o json` would print for a member of
    /// `system:masters`; null if there is no such object.
    ///
    /// # Errors
    ///
    /// The server does not have the kind, or answers with another status than 200 and 404.
    pub fn read(&self, line: &str) -> Result<Value> {
        let (objects, line) = (Objects::of(self), Line::parse(line)?);
        match (line.kinds.as_slice(), line.names.as_slice()) {
            ([kind], [name]) => objects.get(&line.path(&objects.called(kind)?, Some(name))),
            ([kind], []) => objects.list(&line.path(&objects.called(kind)?, None)),
            _ => Ok(json!({"kind": "List", "items": objects.found(&line)?})),
        }
    }

    /// The names of the objects that [`ApiServer::read`] finds: none if it finds nothing.
    pub fn names(&self, line: &str) -> Result<Vec<String>> {
        let found = Objects::of(self).found(&Line::parse(line)?)?;
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(found.iter().map(name).collect())
    }

    /// Like `kubectl wait LINE --for=condition=CONDITION`.
    pub fn wait_for(&self, line: &str, condition: &str, limit: Duration) -> Result<()> {
        wait::until(&format!("{line} to be {condition}"), limit, || {
            let found = Objects::of(self).found(&Line::parse(line)?)?;
            ensure!(!found.is_empty(), "there is none");
            let without = found.iter().find(|object| !has(object, condition));
            without.map_or(Ok(()), |object| Err(anyhow!("{}", object["status"])))
        })
    }
}

// === impl Objects ===

impl<'a> Objects<'a> {
    fn of(server: &'a ApiServer) -> Self {
        Self { server, client: server.administrator() }
    }

    /// The object at this path; null if the server has the kind but no object of that name.
    fn get(&self, path: &str) -> Result<Value> {
        let response = self.client.get(path, &[("accept", JSON)])?;
        if response.status == StatusCode::NOT_FOUND && names_object(&response.text()) {
            return Ok(Value::Null);
        }
        response.expect(StatusCode::OK).with_context(|| path.to_owned())?.json()
    }

    /// The list at this path. A missing path is an error, not an empty list.
    fn list(&self, path: &str) -> Result<Value> {
        let mut list = self.get(path)?;
        ensure!(!list.is_null(), "{path}: not found");
        let [kind, version] = ["kind", "apiVersion"].map(|field| list[field].clone());
        // Fields that all items share are in the list only.
        let kind = kind.as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default();
        for object in list["items"].as_array_mut().into_iter().flatten() {
            (object["kind"], object["apiVersion"]) = (kind.into(), version.clone());
        }
        Ok(list)
    }

    /// All objects that a line names or selects.
    fn found(&self, line: &Line<'_>) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for kind in &line.kinds {
            let resource = self.called(kind)?;
            for name in &line.names {
                all.push(self.get(&line.path(&resource, Some(name)))?);
            }
            if line.names.is_empty() {
                let mut list = self.list(&line.path(&resource, None))?;
                all.extend(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
            }
        }
        all.retain(|object| !object.is_null());
        Ok(all)
    }

    /// Sends a request with a body of this content type.
    fn send(&self, method: &Method, path: &str, kind: &str, body: &Value) -> Result<Response> {
        self.client.send(method, path, &[("content-type", kind)], &Bytes::from(body.to_string()))
    }

    /// The resource by the name that a user types: `RESOURCE` or `RESOURCE.GROUP`, or a kind.
    fn called(&self, kind: &str) -> Result<Resource> {
        let (name, of_group) = kind.split_once('.').map_or((kind, None), |(name, group)| (name, Some(group)));
        self.resource(kind, &|group, _, resource| {
            let mut short = resource["shortNames"].as_array().into_iter().flatten();
            let is_called = resource["resource"] == name
                || resource["singularResource"] == name
                || resource["responseKind"]["kind"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(name))
                || short.any(|short| short == name);
            is_called && of_group.is_none_or(|wanted| wanted == group)
        })
    }

    /// The resource of an object.
    fn resource_of(&self, object: &Value) -> Result<Resource> {
        let of = |field: &str| object[field].as_str().with_context(|| format!("{field}: {object}"));
        let (version, kind) = (of("apiVersion")?, of("kind")?);
        self.resource(&format!("{version} {kind}"), &|_, prefix, resource| {
            resource["responseKind"]["kind"] == kind && prefix.split_once('/').is_some_and(|(_, it)| it == version)
        })
    }

    /// The first matching resource, by its group, its prefix and its discovery entry, in kubectl's
    /// order of preference.
    fn resource(&self, what: &str, is_meant: &dyn Fn(&str, &str, &Value) -> bool) -> Result<Resource> {
        let key = (self.server.address(), what.to_owned());
        if let Some(known) = RESOURCES.lock().get(&key) {
            return Ok(known.clone());
        }
        for root in ["api", "apis"] {
            let groups = self.client.get(&format!("/{root}"), &[("accept", DISCOVERY)])?;
            if let Some(found) = find(&groups.expect(StatusCode::OK)?.json()?, root, is_meant) {
                RESOURCES.lock().insert(key, found.clone());
                return Ok(found);
            }
        }
        bail!("the server has no resource {what:?}")
    }

    /// Forgets the resources of a group whose kinds were redefined.
    fn forget(&self, group: &str) {
        let (address, prefix) = (self.server.address(), format!("apis/{group}/"));
        RESOURCES.lock().retain(|(of, _), known| *of != address || !known.prefix.starts_with(&prefix));
    }
}

/// Whether a 404 is about an object. For a path that is not served, perhaps because the kind is
/// gone, a server answers "404 page not found", or a Status without a name.
fn names_object(body: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|status| status["details"]["name"].is_string())
}

/// Whether a condition of the object is true.
fn has(object: &Value, condition: &str) -> bool {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.any(|one| one["type"] == condition && one["status"] == "True")
}

fn find(groups: &Value, root: &str, is_meant: &dyn Fn(&str, &str, &Value) -> bool) -> Option<Resource> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in list(&groups["items"]) {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in list(&group["versions"]) {
            let prefix = [root, name, version["version"].as_str()?];
            let prefix = prefix.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            let resources = list(&version["resources"]);
            if let Some(resource) = resources.iter().find(|resource| is_meant(name, &prefix, resource)) {
                let plural = resource["resource"].as_str()?.to_owned();
                return Some(Resource { prefix, plural, is_namespaced: resource["scope"] == "Namespaced" });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_not_there_is_told_from_a_kind_that_is_not() {
        let status = |details: &Value| json!({"kind": "Status", "code": 404, "details": details}).to_string();
        assert!(names_object(&status(&json!({"name": "a", "kind": "things"}))));
        for body in [&status(&json!({})), &status(&Value::Null), "404 page not found\n", ""] {
            assert!(!names_object(body), "{body}");
        }
    }

    #[test]
    fn the_first_resource_that_is_meant_is_found() {
        let groups = json!({"items": [{"metadata": {"name": "g"}, "versions": [
            {"version": "v1", "resources": [{"resource": "things", "scope": "Namespaced"}]},
            {"version": "v2", "resources": [{"resource": "things", "scope": "Cluster"}]}]}]});
        let found = |root: &str, wanted: &str| find(&groups, root, &|_, prefix, _| prefix.ends_with(wanted));
        let first = Resource { prefix: "apis/g/v1".to_owned(), plural: "things".to_owned(), is_namespaced: true };
        assert_eq!(found("apis", ""), Some(first));
        assert!(found("apis", "v2").is_some_and(|second| !second.is_namespaced));
        assert_eq!(found("apis", "v3"), None);
        let core = json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
            {"resource": "nodes", "scope": "Cluster"}]}]}]});
        assert_eq!(find(&core, "api", &|_, _, _| true).map(|found| found.prefix).as_deref(), Some("api/v1"));
    }
}
