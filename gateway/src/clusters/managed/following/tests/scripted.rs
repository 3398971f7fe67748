//! A scripted hub whose `ManagedCluster`s are followed.

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use telemetry::readiness::Readiness;
use tokio::time::Instant;

use super::*;

/// A hub that answers as set by the test, and ends every watch at once.
pub struct Scripted {
    /// Status of lists; with 200, a list with the name `a`.
    pub list: Mutex<StatusCode>,
    pub watch: Mutex<StatusCode>,
    /// Status and body of discovery.
    pub discovery: Mutex<(StatusCode, Value)>,
    /// Times of the requests for `ManagedCluster`s.
    asked: Mutex<Vec<Instant>>,
}

/// A scripted hub and the task that follows it.
pub struct Followed {
    pub hub: Arc<Scripted>,
    pub managed: Arc<ManagedClusters>,
    pub readiness: Readiness,
}

/// Discovery of a hub with the group, or without it.
pub fn groups(there: bool) -> (StatusCode, Value) {
    let names = if there { vec!["apps", "cluster.open-cluster-management.io"] } else { vec!["apps"] };
    let groups: Vec<_> = names.into_iter().map(|name| json!({"name": name})).collect();
    (StatusCode::OK, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

// === impl Scripted ===

impl Scripted {
    fn answer(&self, request: &Request<Body>) -> Response<Full<bytes::Bytes>> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let (code, body) = if request.uri().path() == "/apis" {
            self.discovery.lock().clone()
        } else {
            self.asked.lock().push(Instant::now());
            let list = json!({"kind": "ManagedClusterList", "metadata": {"resourceVersion": "7"},
                "items": [{"metadata": {"name": "a", "resourceVersion": "5"}}]});
            (if is_watch { *self.watch.lock() } else { *self.list.lock() }, list)
        };
        let text = match code {
            StatusCode::OK if is_watch => String::new(),
            StatusCode::OK => body.to_string(),
            _ => json!({"kind": "Status", "code": code.as_u16(), "message": "no"}).to_string(),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = code;
        response
    }
}

// === impl Followed ===

impl Followed {
    /// Follows for the clusters' locations.
    pub fn located(list: StatusCode, discovery: (StatusCode, Value)) -> Self {
        let readiness = Readiness::default();
        let purpose = Purpose::Location(Some(readiness.block("managedclusters")));
        Self::start(list, discovery, purpose, readiness)
    }

    /// Follows only for virtual clusters.
    pub fn displayed(list: StatusCode, discovery: (StatusCode, Value)) -> Self {
        Self::start(list, discovery, Purpose::Display, Readiness::default())
    }

    fn start(list: StatusCode, discovery: (StatusCode, Value), purpose: Purpose, readiness: Readiness) -> Self {
        let hub = Arc::new(Scripted {
            list: Mutex::new(list),
            watch: Mutex::new(StatusCode::OK),
            discovery: Mutex::new(discovery),
            asked: Mutex::default(),
        });
        let scripted = Arc::clone(&hub);
        let service = tower::service_fn(move |request: Request<Body>| {
            let response = scripted.answer(&request);
            async move { Ok::<_, kube::Error>(response) }
        });
        let client = Client::new(service, "default");
        let managed = Arc::new(ManagedClusters::default());
        tokio::spawn(run(Hub::new(client.clone(), client, "vela-system"), Arc::clone(&managed), purpose));
        Self { hub, managed, readiness }
    }

    /// Answers lists and watches with `code` for `seconds`.
    pub async fn answering(&self, code: StatusCode, seconds: u64) {
        (*self.hub.list.lock(), *self.hub.watch.lock()) = (code, code);
        sleep(Duration::from_secs(seconds)).await;
    }

    pub fn knows(&self) -> bool {
        self.managed.current().get("a").is_some()
    }

    pub fn is_ready(&self) -> bool {
        self.readiness.blocked_by().is_empty()
    }

    /// Times of requests since the last call.
    pub fn asked(&self) -> Vec<Instant> {
        std::mem::take(&mut self.hub.asked.lock())
    }
}
