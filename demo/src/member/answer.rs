//! From a request to its answer.
//!
//! Order as in a real API server: identity first, then the path, then the representation; each
//! refusal on the way becomes a Status. Query keys that a sample member does not implement
//! (`limit`, `pretty`) are ignored, as the API conventions allow. Only bodies of applied pods are
//! read.

use std::sync::Arc;

use api::{
    accept::{self, DiscoveryForm, Shape},
    selector::label::LabelSelector,
};
use http::Method;
use kit::{
    member::{Recorded, Reply},
    selector::FieldSelector,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    cluster::Cluster,
    documents::{self, Resource},
    query::Query,
    refusal::Refusal,
    selection::Selection,
    streams,
};

/// The Content-Type by which a client recognises aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Everything an answer is made of.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) cluster: Arc<Cluster>,
    /// The only token that is let in.
    pub(super) token: SecretString,
    /// The seconds that passed.
    pub(super) seconds: watch::Receiver<u64>,
}

// === impl Answering ===

impl Answering {
    pub(super) fn new(cluster: Cluster, token: SecretString, seconds: watch::Receiver<u64>) -> Self {
        Self { cluster: Arc::new(cluster), token, seconds }
    }

    pub(super) fn answer(&self, request: &Recorded) -> Reply {
        self.try_answer(request).unwrap_or_else(|Refusal(code, message)| Reply::status(code, &message))
    }

    fn try_answer(&self, request: &Recorded) -> Result<Reply, Refusal> {
        // A plain comparison: the token guards invented data on a loopback address.
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if token != Some(self.token.expose_secret()) {
            return Err(Refusal(401, "Unauthorized".to_owned()));
        }
        let path = request.path().trim_end_matches('/');
        if let Some(stream @ ("exec" | "attach" | "portforward" | "proxy")) = path.split('/').nth(7) {
            return Err(Refusal(501, format!("a sample member runs no containers: {stream} is not served")));
        }
        let pod = path.strip_prefix("/api/v1/namespaces/default/pods/").filter(|name| !name.contains('/'));
        match (&request.method, pod) {
            (&Method::GET, _) => {}
            (&Method::PATCH, Some(name)) => return self.place(name, request),
            (&Method::DELETE, Some(name)) => return self.remove(name),
            _ => {
                let message = "the server does not allow this method on the requested resource";
                return Err(Refusal(405, message.to_owned()));
            }
        }
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let query = Query(request.query().unwrap_or_default());
        self.get(path, &segments, request, &query)
    }

    fn get(&self, path: &str, segments: &[&str], request: &Recorded, query: &Query<'_>) -> Result<Reply, Refusal> {
        match *segments {
            ["livez" | "readyz" | "healthz"] => Ok(Reply::full(200, &[("content-type", "text/plain")], "ok")),
            ["version"] => Ok(Reply::json(200, &self.version())),
            ["api", "v1", "namespaces", namespace, "pods", name, "log"] => self.log(namespace, name, query),
            _ => match (documents::discovery(path, false), segments) {
                (Some(_), _) => discovery(path, accept::discovery(&request.headers)),
                (None, ["api", "v1", rest @ ..]) => self.resource("v1", rest, request, query),
                (None, ["apis", group, "v1", rest @ ..]) => self.resource(&format!("{group}/v1"), rest, request, query),
                _ => Err(Refusal::no_such_path()),
            },
        }
    }

    /// A pod is applied: from now on it runs, or one more than there is room for is refused.
    fn place(&self, name: &str, request: &Recorded) -> Result<Reply, Refusal> {
        if !self.cluster.place(name, request) {
            return Err(Refusal(403, format!("pods {name:?} is forbidden: there is no room for more")));
        }
        Ok(Reply::json(200, &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})))
    }

    fn remove(&self, name: &str) -> Result<Reply, Refusal> {
        if !self.cluster.remove(name) {
            return Err(Refusal(404, format!("pods {name:?} not found")));
        }
        Ok(Reply::json(200, &json!({"apiVersion": "v1", "kind": "Status", "status": "Success"})))
    }

    fn version(&self) -> Value {
        let mut parts = self.cluster.version().trim_start_matches('v').split('.');
        let (major, minor) = (parts.next(), parts.next());
        json!({"major": major, "minor": minor, "gitVersion": self.cluster.version(), "platform": "linux/amd64"})
    }

    fn resource(
        &self,
        api_version: &str,
        rest: &[&str],
        request: &Recorded,
        query: &Query<'_>,
    ) -> Result<Reply, Refusal> {
        let (namespace, plural, name) = match *rest {
            [plural] => (None, plural, None),
            ["namespaces", namespace, plural] => (Some(namespace), plural, None),
            ["namespaces", namespace, plural, name] => (Some(namespace), plural, Some(name)),
            [plural, name] => (None, plural, Some(name)),
            _ => return Err(Refusal::no_such_path()),
        };
        let resource = Resource::all().find(|one| one.plural == plural && one.api_version() == api_version);
        let resource = resource.ok_or_else(Refusal::no_such_path)?;
        let is_watch = name.is_none() && query.flag("watch");
        let shape = if name.is_none() && !is_watch { Shape::List } else { Shape::Object };
        let selection = Selection {
            resource,
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            labels: LabelSelector::parse(&query.text("labelSelector")).map_err(Refusal::bad)?,
            fields: FieldSelector::parse(&query.text("fieldSelector"), &resource.fields()).map_err(Refusal::bad)?,
            form: accept::representation(&request.headers, shape)?,
            whole: query.text("includeObject") == "Object",
        };
        if is_watch { self.watch(selection, query) } else { self.read(&selection) }
    }

    /// One object, or a list.
    fn read(&self, selection: &Selection) -> Result<Reply, Refusal> {
        let version = Cluster::resource_version(*self.seconds.borrow());
        let rows = selection.rows(&self.cluster, version);
        if let Some(name) = &selection.name {
            let row = rows
                .into_iter()
                .next()
                .ok_or_else(|| Refusal(404, format!("{} {name:?} not found", selection.resource.qualified())))?;
            return Ok(Reply::json(200, &selection.shown(row)));
        }
        Ok(Reply::json(200, &selection.list(rows, version)))
    }

    fn watch(&self, selection: Selection, query: &Query<'_>) -> Result<Reply, Refusal> {
        // client-go's reflectors wait for ever for an answer that ignores the parameter; 422 sends
        // them back to list and watch (client-go `tools/cache/reflector.go`).
        if query.flag("sendInitialEvents") {
            let message =
                "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: not supported by this member";
            return Err(Refusal(422, message.to_owned()));
        }
        let seconds = *self.seconds.borrow();
        let now = Cluster::resource_version(seconds);
        let since = match query.number("resourceVersion")? {
            None | Some(0) => None,
            Some(version) if Cluster::remembers(version, seconds) => Some(version),
            Some(version) => return Err(Refusal(410, format!("too old resource version: {version}"))),
        };
        let initial = if since.is_none() { selection.rows(&self.cluster, now) } else { Vec::new() };
        let initial: String = initial.into_iter().map(|row| selection.event("ADDED", row)).collect();
        Ok(streams::watch(&self.cluster, self.seconds.clone(), selection, initial, since.unwrap_or(now)))
    }

    fn log(&self, namespace: &str, name: &str, query: &Query<'_>) -> Result<Reply, Refusal> {
        let pod = self.cluster.pod(namespace, name, *self.seconds.borrow());
        let pod = pod.ok_or_else(|| Refusal(404, format!("pods {name:?} not found")))?;
        if pod["status"]["phase"] == "Pending" {
            let state = &pod["status"]["containerStatuses"][0]["state"];
            let reason = state["waiting"]["reason"].as_str().unwrap_or("Pending");
            return Err(Refusal(400, format!("container in pod {name:?} is waiting to start: {reason}")));
        }
        let tail = query.number("tailLines")?;
        Ok(streams::log(&self.cluster, self.seconds.clone(), namespace, name, tail, query.flag("follow")))
    }
}

fn discovery(path: &str, form: DiscoveryForm) -> Result<Reply, Refusal> {
    let document = documents::discovery(path, form == DiscoveryForm::AggregatedV2).ok_or_else(Refusal::no_such_path)?;
    let aggregated = document["kind"] == "APIGroupDiscoveryList";
    let media_type = if aggregated { AGGREGATED } else { "application/json" };
    Ok(Reply::full(200, &[("content-type", media_type)], document.to_string()))
}
