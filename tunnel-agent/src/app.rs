//! Wiring: builds everything in order, runs it, then drains it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use net::drain::Drain;
use net::process;
use net::runtime::BackgroundRuntime;
use prometheus_client::registry::Registry;
use telemetry::admin::{self, Endpoint, Probes};
use telemetry::certificates::Certificates;
use telemetry::readiness::{NotReady, Readiness};
use tunnel::Destination;

use crate::api_server;
use crate::args::{self, Config};
use crate::connector::{Connector, process_name};
use crate::credentials::Credentials;
use crate::files::TokenFile;
use crate::forward::{self, Forwarder};
use crate::joining::{Joining, SharedStanding};
use crate::links::{self, Links};
use crate::metrics::{Live, Metrics};
use crate::streams::Streams;

/// Conditions that keep the agent from being ready, as `/readyz` names them.
const CONDITIONS: &[&str] = &[JOINED, links::CONDITION, api_server::CONDITION, SHUTDOWN];
/// The hub has accepted the cluster; only for an agent that must join.
const JOINED: &str = "joined";
const SHUTDOWN: &str = "shutdown";

/// Time at shutdown for remaining tasks, and for name look-ups, which cannot be interrupted.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// A running agent. Dropping it stops it without draining: its streams are reset.
pub struct Agent {
    admin: Endpoint,
    readiness: Readiness,
    links: Arc<Links>,
    drain: Drain,
    drain_timeout: Duration,
    /// The last field, because the others live on the runtime.
    runtime: BackgroundRuntime,
}

// === impl Agent ===

impl Agent {
    /// Starts from command-line arguments, the program's name first. Returns once everything runs;
    /// links come later. It can be called inside or outside an async runtime, because it brings its
    /// own.
    pub fn start(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> anyhow::Result<Self> {
        let config = Config::new(&args::parse_from(arguments)?, |name| std::env::var(name).ok())?;
        let runtime = runtime(config.threads)?;
        Self::assemble(config, runtime)
    }

    /// Runs as the process's main function: until SIGTERM or SIGINT, then drains. A second signal
    /// ends the process at once.
    pub fn run(config: Config) -> anyhow::Result<()> {
        let runtime = runtime(config.threads)?;
        process::run(&runtime.handle().clone(), || Self::assemble(config, runtime), Self::stop, || ())
    }

    fn assemble(config: Config, runtime: BackgroundRuntime) -> anyhow::Result<Self> {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let certificates = Certificates::register("tunnel_agent", &mut registry);
        let readiness = Readiness::default();
        let links = Links::new(config.links, &readiness);
        let streams = Arc::new(Streams::new(config.max_held_bytes));
        registry.register_collector(Box::new(Live { links: Arc::clone(&links), streams: Arc::clone(&streams) }));
        let probes = Probes {
            readiness: readiness.clone(),
            conditions: CONDITIONS,
            metrics: telemetry::metrics::Metrics::new(registry),
        };
        let drain = Drain::new();
        let token = config.token_file.map(TokenFile::new);
        let credentials = Arc::new(Credentials::new(config.files, token, metrics.clone()));
        certificates.watch(Arc::clone(&credentials) as _);
        let agent = process_name(|name| std::env::var(name).ok());
        let outbound = Arc::new(config.outbound);
        let joining = config.join.map(|join| {
            Joining::new(config.cluster.as_str(), join, &outbound, Arc::clone(&credentials), metrics.clone())
        });
        let joining = joining.transpose()?;
        let standing = joining.as_ref().map(Joining::standing).unwrap_or_default();
        let admin = serve_admin(config.admin_listen, &runtime, probes, Arc::clone(&links), standing.clone())?;
        tracing::info!(
            cluster = %config.cluster, agent, api_server = %config.api_server.place, proxy = %outbound, joins = joining.is_some(),
            admin = %admin.address(), "running"
        );
        let connector = Arc::new(Connector {
            cluster: config.cluster,
            agent,
            server_name: config.server_name,
            credentials: Arc::clone(&credentials),
            outbound,
            settings: config.settings,
            links: Arc::clone(&links),
            forwarder: Arc::new(Forwarder::new(config.targets, config.dial_timeout, streams, metrics.clone())),
            metrics: metrics.clone(),
            drain: drain.clone(),
        });
        runtime.handle().spawn(credentials.follow());
        runtime.handle().spawn(api_server::watch(config.api_server, readiness.clone(), metrics));
        let joined = joining.as_ref().map(|_| (standing, readiness.block(JOINED)));
        if let Some(joining) = joining {
            runtime.handle().spawn(joining.run());
        }
        runtime.handle().spawn(link(joined, connector, config.servers));
        Ok(Self { admin, readiness, links, drain, drain_timeout: config.drain_timeout, runtime })
    }

    /// Address of the admin endpoint: with the real port, even if 0 was requested.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin.address()
    }

    /// Number of running tasks: ended work must not increase it.
    pub fn tasks(&self) -> usize {
        self.runtime.handle().metrics().num_alive_tasks()
    }

    /// Blocks until the agent is linked and its API server answers.
    pub fn wait_ready(&self, patience: Duration) -> anyhow::Result<()> {
        if self.readiness.wait(patience) {
            return Ok(());
        }
        let blocked = self.readiness.blocked_by().join(", ");
        Err(anyhow!("not ready after {patience:?}: {blocked}; {}", described(&self.links).trim_end()))
    }

    /// Shuts down as on SIGTERM, and returns when everything has ended.
    pub fn stop(self) -> anyhow::Result<()> {
        let not_ready = self.readiness.block(SHUTDOWN);
        let (drain, patience) = (self.drain, self.drain_timeout);
        let draining = async move { drain.finish(patience).await };
        let in_time = process::drained(self.runtime.handle(), draining, patience);
        if matches!(in_time, Ok(true)) {
            tracing::info!("drained");
        } else {
            tracing::warn!(after = ?patience, "cut off unfinished streams");
        }
        let _ = self.runtime.end(2 * LAST_MOMENT);
        drop(not_ready);
        in_time?;
        Ok(())
    }
}

/// Makes links to all servers, after the cluster has joined if it must.
async fn link(joined: Option<(SharedStanding, NotReady)>, connector: Arc<Connector>, servers: Vec<Destination>) {
    if let Some((standing, not_ready)) = joined {
        tokio::select! {
            () = standing.may_link() => drop(not_ready),
            () = connector.drain.soft() => return,
        }
    }
    for server in servers {
        tokio::spawn(Arc::clone(&connector).run(server));
    }
}

fn runtime(threads: usize) -> anyhow::Result<BackgroundRuntime> {
    // A resolver that hangs must not accumulate threads.
    let runtime = BackgroundRuntime::of_relay("tunnel-agent", threads, forward::THREADS, LAST_MOMENT);
    runtime.context("cannot start a runtime")
}

fn serve_admin(
    listen: SocketAddr,
    runtime: &BackgroundRuntime,
    probes: Probes,
    links: Arc<Links>,
    standing: SharedStanding,
) -> anyhow::Result<Endpoint> {
    let handler = move |request: http::Request<hyper::body::Incoming>| {
        let trouble = || standing.certificate_trouble().map(|trouble| trouble + "\n").unwrap_or_default();
        let answer = probes.answer(&request, || described(&links) + &trouble()).unwrap_or_else(|| {
            admin::text(http::StatusCode::NOT_FOUND, "there are /livez, /readyz?verbose and /metrics\n")
        });
        std::future::ready(answer)
    };
    admin::serve(listen, runtime.handle(), handler).with_context(|| format!("cannot listen on --admin-listen={listen}"))
}

/// A summary of the links in one line.
fn described(links: &Links) -> String {
    let found = links.summary();
    let mut line = format!("{} of {} links to {} tunnel-servers", found.links, found.wanted, found.servers);
    if let Some(rtt) = found.slowest {
        let _ = write!(line, ", round trip at most {rtt:?}");
    }
    line.push('\n');
    line
}
