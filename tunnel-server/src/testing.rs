//! Tools for tests of frontends: listeners in front of a registry, and an agent whose destinations
//! each behave in their own way.

mod agent;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kit::client::Client;
use kit::pki::{Authority, Issued, Leaf, Trust};
use net::tls::server::KeyPairFiles;
use prometheus_client::registry::Registry as MetricsRegistry;
use telemetry::certificates::Certificates;
use tempfile::TempDir;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio_rustls::client::TlsStream;
use tunnel::{Budget, ClusterName, Hop, Link, Settings};

use crate::args::{FrontendConfig, FrontendTls};
use crate::frontend::Frontends;
use crate::metrics::Metrics;
use crate::shared::{Common, Shared};
use links::Limits;
use links::Registry;

pub use self::agent::{Agent, BANNER};
/// The dial time that the agent reports for `timed.member`. Other destinations report none, as
/// older agents do.
pub const DIALLED: Duration = Duration::from_micros(412);
/// Most bytes that all streams together may hold: enough for one stalled stream, which holds most
/// of a window, but not for two.
pub const BUDGET: u64 = 1 << 20;
/// How long tests wait for an event that should happen soon.
pub const SOON: Duration = Duration::from_secs(10);

/// Listeners for frontends, and one agent of the cluster `east`.
pub struct Bench {
    pub shared: Shared,
    pub frontends: Frontends,
    pub agent: Agent,
    pub authority: Authority,
    directory: TempDir,
}

// === impl Bench ===

impl Bench {
    pub async fn start() -> Self {
        Self::with(shared(Limits::default(), None)).await
    }

    pub async fn with(shared: Shared) -> Self {
        let agent = Agent::link(&shared, "east").await;
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new("frontends");
        authority.write_to(directory.path(), "ca").expect("written");
        let serving = Authority::new("servers").issue(&Leaf::server("frontend"));
        let files = serving.write_to(directory.path(), "serving").expect("written");
        let config = FrontendConfig {
            tls: Some(FrontendTls {
                listen: ([127, 0, 0, 1], 0).into(),
                serving: KeyPairFiles { certificate: files.certificate, private_key: files.key },
                client_ca_file: directory.path().join("ca.crt"),
            }),
            uds: Some(directory.path().join("frontend.sock")),
        };
        let frontends = Frontends::start(&config, shared.clone(), &Handle::current()).expect("started");
        Self { shared, frontends, agent, authority, directory }
    }

    pub fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.crt")
    }

    /// Replaces the CA: from then on only certificates of the new one are valid.
    pub fn rotate(&mut self) {
        self.authority = Authority::new("frontends, later");
        self.authority.write_to(self.directory.path(), "ca").expect("written");
    }

    pub fn uds(&self) -> &Path {
        self.frontends.uds().expect("there is one")
    }

    pub async fn unix(&self) -> UnixStream {
        UnixStream::connect(self.uds()).await.expect("connected")
    }

    pub fn certificate(&self) -> Issued {
        self.authority.issue(&Leaf::client("gateway"))
    }

    pub async fn tls(&self, identity: Option<&Issued>, alpn: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
        let address = self.frontends.address().expect("there is one");
        Client::new(address, Trust::Anyone, identity).tls(alpn).await
    }

    /// A gateway's connection.
    pub async fn gateway(&self) -> Link {
        let stream = self.tls(Some(&self.certificate()), &["h2"]).await.expect("admitted");
        Link::start(stream, &Settings::default(), Hop::Server).await.expect("HTTP/2")
    }

    pub fn metrics_text(&self) -> String {
        self.shared.exposition.encode()
    }
}

/// Parts without listeners.
pub fn shared(limits: Limits, default_cluster: Option<&str>) -> Shared {
    let mut registry = MetricsRegistry::default();
    let metrics = Metrics::register(&mut registry);
    let links = links::Metrics::register(&mut registry);
    let budget = Budget::new(BUDGET);
    Metrics::watch(&mut registry, &budget);
    let certificates = Certificates::register("tunnel_server", &mut registry);
    Arc::new(Common {
        registry: Arc::new(Registry::new(limits, links)),
        readiness: telemetry::readiness::Readiness::default(),
        drain: net::drain::Drain::new(),
        metrics,
        certificates,
        exposition: Arc::new(telemetry::metrics::Metrics::new(registry)),
        refusals: net::throttle::LogThrottle::default(),
        budget,
        limits,
        settings: Settings::default(),
        dial_timeout: Duration::from_secs(10),
        default_cluster: default_cluster.map(|name| ClusterName::parse(name).expect("a name")),
    })
}
