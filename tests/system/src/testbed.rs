//! The gateway in this process, with everything it reads from disk in a directory of its own.
//!
//! `Testbed::with(&member).await` is enough for most tests: no hub, one cluster [`CLUSTER`], an
//! administrator and a viewer. [`Testbed::builder`] offers the rest.

mod files;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use gateway::Gateway;
use kit::client::Client;
use kit::exposition;
use kit::hub::{ClusterSecret, FakeHub};
use kit::member::FakeMember;
use kit::member::raw::RawMember;
use kit::pki::{Authority, Issued, Leaf, Trust};
use kit::wait::{WAIT, within};

use self::files::Files;
use crate::connection::{Answer, Connection};
use crate::versions::Http;

/// The name of the cluster that [`Testbed::with`] registers.
pub const CLUSTER: &str = "c1";
/// Bearer token of `admin`, a member of `system:masters`.
pub const ADMIN: &str = "admin-token";
/// Bearer token of `viewer`, which may `get` through any cluster and nothing else.
pub const VIEWER: &str = "viewer-token";
/// The credential of clusters made by [`cluster`].
pub const MEMBER_TOKEN: &str = "member-token";

/// Namespace of the cluster Secrets.
const NAMESPACE: &str = "vela-system";

/// A running gateway. It stops without draining when dropped; [`Testbed::stop`] drains.
pub struct Testbed {
    gateway: Gateway,
    address: SocketAddr,
    files: Files,
    serving: Authority,
    clients: Authority,
}

/// A gateway to be started.
pub struct TestbedBuilder {
    files: Files,
    serving: Authority,
    clients: Authority,
    arguments: Vec<String>,
    has_hub: bool,
    threads: usize,
}

/// A fake that a cluster's Secret can point to.
pub trait Reachable {
    /// `https://127.0.0.1:<port>`.
    fn url(&self) -> String;

    /// The root to trust, PEM.
    fn ca_pem(&self) -> String;
}

impl Reachable for FakeMember {
    fn url(&self) -> String {
        self.url()
    }

    fn ca_pem(&self) -> String {
        self.ca_pem()
    }
}

impl Reachable for RawMember {
    fn url(&self) -> String {
        self.url()
    }

    fn ca_pem(&self) -> String {
        self.ca_pem()
    }
}

/// The Secret of a cluster at `member`, with [`MEMBER_TOKEN`] as its credential.
pub fn cluster(name: &str, member: &impl Reachable) -> ClusterSecret {
    ClusterSecret::new(NAMESPACE, name).endpoint(&member.url()).ca(&member.ca_pem()).token(MEMBER_TOKEN)
}

/// The gateway's path to `rest` (path and query) of a cluster.
pub fn proxied(cluster: &str, rest: &str) -> String {
    format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{cluster}/proxy{rest}")
}

// === impl Testbed ===

impl Testbed {
    /// Starts a gateway without a hub and without clusters by default.
    pub fn builder() -> TestbedBuilder {
        TestbedBuilder::new()
    }

    /// A ready gateway with the cluster [`CLUSTER`] at `member`.
    pub async fn with(member: &impl Reachable) -> Self {
        Self::builder().cluster(CLUSTER, cluster(CLUSTER, member)).start().await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to which tunnel-agents link, if they may.
    pub fn tunnel_address(&self) -> Option<SocketAddr> {
        self.gateway.tunnel_address()
    }

    /// The authority of users' client certificates, where there is no hub to name another.
    pub fn clients(&self) -> &Authority {
        &self.clients
    }

    /// The authority of the serving certificate.
    pub fn serving(&self) -> &Authority {
        &self.serving
    }

    /// A client without any credential.
    pub fn client(&self) -> Client {
        Client::new(self.address, Trust::Authority(&self.serving), None)
    }

    /// A client that presents a certificate.
    pub fn client_with(&self, identity: &Issued) -> Client {
        Client::new(self.address, Trust::Authority(&self.serving), Some(identity))
    }

    /// A client of the port of Open Cluster Management's user server, which presents a certificate
    /// or none.
    pub fn user_server_client(&self, identity: Option<&Issued>) -> Client {
        let address = self.gateway.user_server_address().expect("the port is asked for");
        Client::new(address, Trust::Authority(&self.serving), identity)
    }

    /// A new connection of the administrator.
    pub async fn connect(&self, http: Http) -> Connection {
        self.anonymous(http).await.bearer(ADMIN)
    }

    /// A new connection without any credential.
    pub async fn anonymous(&self, http: Http) -> Connection {
        http.connect(&self.client()).await.expect("the gateway accepts connections")
    }

    /// One GET by the administrator, on a connection of its own.
    pub async fn get(&self, target: &str) -> Answer {
        self.connect(Http::H2).await.get(target).await
    }

    /// The value of a series in the gateway's metrics, 0 if there is none.
    pub async fn metric(&self, series: &str) -> u64 {
        exposition::value(&self.get("/metrics").await.text(), series).unwrap_or_default()
    }

    /// Creates or replaces a cluster's manifest; seen by the gateway within its polling interval.
    pub fn register(&self, name: &str, secret: ClusterSecret) {
        self.files.write_cluster(name, secret);
    }

    /// As [`Testbed::register`], with any text as the manifest.
    pub fn write_manifest(&self, name: &str, text: &str) {
        self.files.write_manifest(name, text);
    }

    /// Deletes a cluster's manifest.
    pub fn unregister(&self, name: &str) {
        self.files.remove_cluster(name);
    }

    /// Replaces the serving certificate on disk; [`TestbedBuilder::serving_leaf`] is the one of the
    /// start.
    pub fn replace_serving_certificate(&self, certificate: &Issued) {
        self.files.write_serving(certificate);
    }

    /// The directory with all files of this gateway.
    pub fn directory(&self) -> &Path {
        self.files.directory()
    }

    /// A connection of `hub`'s aggregator, which names no user yet.
    pub async fn aggregator(&self, hub: &FakeHub, http: Http) -> Connection {
        let connection = http.connect(&self.client_with(&hub.front_proxy_identity())).await;
        connection.expect("the gateway accepts connections")
    }

    /// As [`Testbed::aggregator`], for a user that needs no review.
    pub async fn aggregator_as_admin(&self, hub: &FakeHub, http: Http) -> Connection {
        self.aggregator(hub, http).await.with("x-remote-user", "admin").with("x-remote-group", "system:masters")
    }

    /// Waits, at most `limit`, until a GET of `target` by the administrator is answered as
    /// `expected`; returns that answer.
    pub async fn until(&self, limit: Duration, target: &str, expected: impl Fn(&Answer) -> bool) -> Answer {
        self.connect(Http::H2).await.until(limit, target, expected).await
    }

    /// Waits until the gateway says that it is ready.
    pub async fn ready(&self) {
        self.anonymous(Http::H2).await.until(WAIT, "/readyz", |answer| answer.status == 200).await;
    }

    /// Drains and stops, as SIGTERM does; returns when everything has ended.
    pub async fn stop(self) {
        let Self { gateway, files, .. } = self;
        let stopping = tokio::task::spawn_blocking(move || gateway.stop());
        let stopped = within(3 * WAIT, "the end of the gateway", stopping).await;
        stopped.expect("stopping does not panic").expect("the gateway stops in time");
        drop(files);
    }
}

impl std::fmt::Debug for Testbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rig").field("address", &self.address).finish_non_exhaustive()
    }
}

// === impl TestbedBuilder ===

impl TestbedBuilder {
    fn new() -> Self {
        let (serving, clients) = (Authority::new("serving-ca"), Authority::new("client-ca"));
        let files = Files::new(&serving.issue(&Self::serving_leaf()), &clients);
        Self { files, serving, clients, arguments: Vec::new(), has_hub: false, threads: 1 }
    }

    /// The serving certificate as it is issued at the start.
    pub fn serving_leaf() -> Leaf {
        Leaf::server("cluster-gateway")
    }

    /// Registers a cluster by a manifest.
    #[must_use]
    pub fn cluster(self, name: &str, secret: ClusterSecret) -> Self {
        self.files.write_cluster(name, secret);
        self
    }

    /// Registers a cluster by any text.
    #[must_use]
    pub fn manifest(self, name: &str, text: &str) -> Self {
        self.files.write_manifest(name, text);
        self
    }

    /// Takes clusters, users and permissions from `hub`, and none from files.
    #[must_use]
    pub fn hub(mut self, hub: &FakeHub) -> Self {
        hub.write_kubeconfig(self.files.directory()).expect("the directory is writable");
        self.has_hub = true;
        self
    }

    /// A further command-line argument.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Serves with this many threads in place of one, which makes counts of connections
    /// predictable.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Testbed {
        let testbed = self.launch().await;
        testbed.ready().await;
        testbed
    }

    /// Starts it and returns as soon as it listens.
    pub async fn launch(self) -> Testbed {
        let mut arguments = vec![
            "cluster-gateway".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--serving-threads={}", self.threads),
        ];
        // A test that gives the delay itself gives it once: the flag may not be repeated.
        if !self.arguments.iter().any(|argument| argument.starts_with("--shutdown-delay-duration")) {
            arguments.push("--shutdown-delay-duration=0s".to_owned());
        }
        arguments.extend(self.files.arguments(self.has_hub));
        arguments.extend(self.arguments);
        // Blocks for a moment, during which a hub on this runtime may have to answer.
        let starting = tokio::task::spawn_blocking(move || Gateway::start(arguments));
        let started = within(WAIT, "the start of the gateway", starting).await;
        let gateway = started.expect("starting does not panic").expect("the gateway starts");
        let address = gateway.address();
        Testbed { gateway, address, files: self.files, serving: self.serving, clients: self.clients }
    }
}
