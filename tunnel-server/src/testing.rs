//! Tools for tests of frontends: listeners in front of a registry, and an agent whose destinations
//! each behave in their own way.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kit::pki::{Authority, Issued, Leaf, Trust, client_config};
use net::tls::server::KeyPairFiles;
use prometheus_client::registry::Registry as MetricsRegistry;
use rustls_pki_types::ServerName;
use telemetry::certificates::Certificates;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tunnel::register::Registration;
use tunnel::{Budget, ClusterName, Hop, Incoming, Link, Reason, Refusal, Serving, Settings, Timing};

use crate::args::{FrontendConfig, FrontendTls};
use crate::frontend::Frontends;
use crate::metrics::Metrics;
use crate::shared::{Common, Shared};
use links::Limits;
use links::{Credential, Linked, Named, Registry};

/// First bytes of `banner.member`.
pub const BANNER: &[u8] = b"SSH-2.0-member\r\n";
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

/// A link in a registry, and the events its agent saw.
pub struct Agent {
    _linked: Linked,
    /// Hosts of the dials that were cancelled.
    pub cancelled: mpsc::UnboundedReceiver<String>,
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
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(client_config(Trust::Anyone, identity, alpn));
        connector.connect(ServerName::try_from("localhost").expect("a name"), stream).await
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

// === impl Agent ===

impl Agent {
    pub async fn link(shared: &Shared, cluster: &str) -> Self {
        let (server, agent) = tokio::io::duplex(64 * 1024);
        let (notices, cancelled) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let handler = move |incoming| behave(incoming, notices.clone());
            let _ = tunnel::serve(agent, &Settings::default(), Serving::default(), handler).await;
        });
        let link = Link::start(server, &shared.settings, Hop::Agent).await.expect("HTTP/2");
        let registration = Registration {
            cluster: ClusterName::parse(cluster).expect("a name"),
            agent: "fake".to_owned(),
            link: 0,
            version: "0".to_owned(),
        };
        let credential = Credential("test".into());
        let place = shared.registry.reserve(&registration, &credential).expect("room");
        let named = Named::new(&registration, SocketAddr::from(([127, 0, 0, 1], 1)), credential);
        Self { _linked: shared.registry.add(place, named, link), cancelled }
    }
}

/// A destination that behaves as its host says; any other host, such as a cluster's name, echoes.
async fn behave(mut incoming: Incoming, cancelled: mpsc::UnboundedSender<String>) {
    let host = incoming.destination.host().to_owned();
    match host.as_str() {
        "hole.member" => {
            incoming.cancelled().await;
            let _ = cancelled.send(host);
        }
        "closed.member" => {
            let message = "dial tcp closed.member:443: connect: connection refused";
            incoming.refuse(&Refusal::new(Hop::Agent, Reason::Unreachable, message));
        }
        "forbidden.member" => {
            incoming.refuse(&Refusal::new(Hop::Agent, Reason::Forbidden, "forbidden.member:443 is not allowed"));
        }
        "silent-close.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            let _ = stream.shutdown().await;
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
        "timed.member" => echo(incoming.accept_timed(Timing::of_dial(DIALLED)).expect("the server is there")).await,
        "banner.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            let _ = stream.write_all(BANNER).await;
            echo(stream).await;
        }
        "flood.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            while stream.write_all(&[0; 16 * 1024]).await.is_ok() {}
        }
        "reset.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            let mut byte = [0];
            let _ = stream.read(&mut byte).await;
            stream.reset();
        }
        _ => echo(incoming.accept().expect("the server is there")).await,
    }
}

async fn echo(stream: tunnel::Stream) {
    let (mut from, mut to) = tokio::io::split(stream);
    if tokio::io::copy(&mut from, &mut to).await.is_ok() {
        let _ = to.shutdown().await;
    }
}
