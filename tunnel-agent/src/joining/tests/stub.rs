//! A hub of a few objects; a test may replace any of its answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use net::tls::client_files::ClientFiles;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::request::REQUESTS;
use super::super::state::StateDirectory;
use super::*;

pub const CLUSTER: &str = "c1";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/c1/leases/managed-cluster-lease";

type Fault = Box<dyn Fn(&Recorded) -> Option<Reply> + Send>;

/// See the module.
#[derive(Clone)]
pub struct Stub(Arc<Inner>);

struct Inner {
    hub: FakeMember,
    directory: TempDir,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    /// Requests for certificates, as they were sent.
    asked: Vec<Recorded>,
    /// The progress of each, by name; none if it is gone.
    status: BTreeMap<String, Option<Value>>,
    lease_renewals: usize,
    fault: Option<Fault>,
}

/// An agent that runs until this is dropped.
pub struct Running {
    pub standing: SharedStanding,
    pub metrics: Metrics,
    registry: Registry,
    task: tokio::task::JoinHandle<()>,
}

// === impl Stub ===

impl Stub {
    pub async fn start() -> Self {
        let hub = FakeMember::start(MemberOptions::default()).await;
        let book = Arc::new(Mutex::new(Book::default()));
        let answering = Arc::clone(&book);
        hub.on_any(move |request| answering.lock().answer(request));
        Self(Arc::new(Inner { hub, directory: tempfile::tempdir().unwrap(), book }))
    }

    /// Answers in place of the hub, for requests for which it returns an answer.
    pub fn fault(&self, fault: impl Fn(&Recorded) -> Option<Reply> + Send + 'static) {
        self.0.book.lock().fault = Some(Box::new(fault));
    }

    pub fn no_fault(&self) {
        self.0.book.lock().fault = None;
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.directory.path().join(name)
    }

    pub fn state(&self) -> StateDirectory {
        StateDirectory::open(&self.path("state")).unwrap()
    }

    /// The names of the created requests, in order.
    pub fn asked(&self) -> Vec<String> {
        self.0.book.lock().asked.iter().filter_map(name).collect()
    }

    pub fn lease_renewals(&self) -> usize {
        self.0.book.lock().lease_renewals
    }

    pub fn set_status(&self, name: &str, status: Option<Value>) {
        self.0.book.lock().status.insert(name.to_owned(), status);
    }

    /// Signs the request that the agent waits for.
    pub fn issue(&self, from: Span, to: Span) {
        let pending = self.state().request().unwrap().unwrap();
        let agent = self.state().agent_name(CLUSTER).unwrap();
        let pem = certificate(&pending.key, &agent, from, to);
        let approved = json!([{"type": "Approved"}]);
        self.set_status(&pending.name, Some(json!({"conditions": approved, "certificate": STANDARD.encode(pem)})));
    }

    /// Prepares the state as if the agent had joined before.
    pub async fn joined_before(&self, from: Span, to: Span) {
        let (state, key) = (self.state(), request::new_key().unwrap());
        let agent = state.agent_name(CLUSTER).unwrap();
        let pem = certificate(&key, &agent, from, to);
        let way = HubWay::read(&self.kubeconfig("bootstrap")).await.unwrap();
        state.take(&Pending { name: "before".to_owned(), key }, &pem, &way).unwrap();
    }

    /// A kubeconfig of the hub.
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let document = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": self.0.hub.url(),
                "certificate-authority-data": STANDARD.encode(self.0.hub.ca_pem())}}],
            "users": [{"name": "it", "user": {"token": "bootstrap"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        std::fs::write(&path, document.to_string()).unwrap();
        path
    }

    /// An agent that learns of a member from `member`.
    pub fn run(&self, member: Member, credential: Option<SecretName>) -> Running {
        Self::run_with(JoinConfig {
            bootstrap: self.kubeconfig("bootstrap"),
            state_dir: self.path("state"),
            is_for_one_run: false,
            state_secret: None,
            member,
            credential,
            member_url: None,
        })
    }

    pub fn run_with(config: JoinConfig) -> Running {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let credentials = Arc::new(Credentials::new(ClientFiles::default(), None, metrics.clone()));
        let outbound = Arc::new(Outbound::direct());
        let mut joining = Joining::new(CLUSTER, config, &outbound, credentials, metrics.clone()).unwrap();
        joining.timing = Timing {
            unbelieved: Duration::from_millis(500),
            look: Duration::from_millis(200),
            unannounced: Duration::from_secs(1),
        };
        Running { standing: joining.standing(), metrics, registry, task: tokio::spawn(joining.run()) }
    }
}

fn certificate(key: &SecretString, agent: &str, from: Span, to: Span) -> Vec<u8> {
    let key = KeyPair::from_pem(key.expose_secret()).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let own = format!("system:open-cluster-management:{CLUSTER}");
    params.distinguished_name.push(DnType::OrganizationName, own.clone());
    params.distinguished_name.push(DnType::CommonName, format!("{own}:{agent}"));
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now + from, now + to);
    params.self_signed(&key).unwrap().pem().into_bytes()
}

fn name(request: &Recorded) -> Option<String> {
    let document: Value = serde_json::from_slice(&request.body()).ok()?;
    document["metadata"]["name"].as_str().map(str::to_owned)
}

// === impl Book ===

impl Book {
    fn answer(&mut self, request: &Recorded) -> Reply {
        let path = request.path().to_owned();
        if request.method == Method::POST && path == REQUESTS {
            self.asked.push(request.clone());
        }
        if let Some(reply) = self.fault.as_ref().and_then(|fault| fault(request)) {
            return reply;
        }
        match (request.method.as_str(), &*path) {
            ("GET", path) if path == cluster::path(CLUSTER) => Reply::json(
                200,
                &json!({"metadata": {"name": CLUSTER, "resourceVersion": "1"},
                    "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 1}}),
            ),
            ("POST", REQUESTS) => Reply::json(201, &json!({})),
            ("GET", REQUESTS) => Reply::json(200, &json!({"items": []})),
            ("GET", path) if path.starts_with(REQUESTS) => self.request(&path[REQUESTS.len() + 1..]),
            ("GET", LEASES) => Reply::json(200, &json!({"spec": {}})),
            ("PUT", LEASES) => {
                self.lease_renewals += 1;
                Reply::json(200, &json!({"spec": {}}))
            }
            ("PATCH", _) => Reply::json(200, &json!({})),
            _ => Reply::not_found(),
        }
    }

    fn request(&self, wanted: &str) -> Reply {
        let asked = self.asked.iter().find(|asked| name(asked).as_deref() == Some(wanted));
        match (asked, self.status.get(wanted)) {
            (None, _) | (_, Some(None)) => Reply::not_found(),
            (Some(asked), status) => {
                let mut document: Value = serde_json::from_slice(&asked.body()).unwrap();
                document["status"] = status.cloned().flatten().unwrap_or_default();
                Reply::json(200, &document)
            }
        }
    }
}

// === impl Running ===

impl Running {
    /// The value of a series, which is written exactly so.
    pub fn metric(&self, series: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        kit::exposition::value(&text, series).unwrap_or_else(|| panic!("no {series}"))
    }

    /// Ends it as a crash does.
    pub async fn kill(mut self) {
        self.task.abort();
        // Only the task's end matters, not its result.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether a request is one with the agent's own certificate.
pub fn is_agents(request: &Recorded) -> bool {
    request.header("authorization").is_none()
}

pub fn is_bootstraps(request: &Recorded) -> bool {
    !is_agents(request)
}

/// The content of a file. Empty if it cannot be read.
pub fn contents(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
