//! A way to the upstream: where to connect, which path and headers to send, and whose processor time counts.

mod gateway;
mod haproxy;
mod karmada;
mod nginx;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::StatusCode;
use hub_tests::http::Client;
use hub_tests::hub::GATEWAY_HOST;
use hub_tests::process::Process;
use hub_tests::{ports, wait};
use kit::pki::{self, Authority, Issued, Leaf, PemFiles, Trust};
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::figure::{BASELINE, DIRECT, GO, HAPROXY, KARMADA, NGINX, OURS, Target};
use crate::ground::{Ground, Program};
use crate::tool::Absent;
use crate::usage::Tree;

/// As [`OURS`], [`NGINX`] and [`HAPROXY`], which have one thread (or worker) each, with two.
pub const OURS_2: Target = "ours, 2 threads";
pub const NGINX_2: Target = "nginx, 2 workers";
pub const HAPROXY_2: Target = "haproxy, 2 threads";

const START_LIMIT: Duration = Duration::from_secs(30);

/// A running proxy, or none ([`DIRECT`]).
pub struct Way {
    pub address: SocketAddr,
    /// Put before the upstream's paths.
    pub prefix: String,
    /// `Authorization: Bearer …` and the like, as `h2load -H` takes them.
    pub headers: Vec<String>,
    /// Of the proxy; of the upstream itself on the direct way.
    pub tree: Tree,
    /// The authority of its certificate, which is good for `127.0.0.1` and `localhost`.
    pub trusted: Arc<Authority>,
    process: Option<Process>,
    /// Of the destination.
    probe: String,
}

/// What stands at the end of a way.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    /// Under which gateways know it, and part of files' names.
    pub cluster: &'a str,
    pub address: SocketAddr,
    pub authority: &'a Arc<Authority>,
    pub tree: &'a Tree,
    /// A path that is answered with 200 at once.
    pub probe: &'a str,
    /// Whether proxies are to pass on `Upgrade:`, which some do over HTTP/1.1 alone.
    pub upgrades: bool,
}

/// How gateways of the hub know the destination, and what else they are told.
#[derive(Clone, Copy, Default)]
pub struct Registered<'a> {
    /// In which the caller has put its Secret; none: it is put where the others are.
    pub namespace: Option<&'a str>,
    pub flags: &'a [&'a str],
}

/// What every proxy needs to be started.
struct Plan<'a> {
    /// Unlike any other's: of its files and its process.
    name: String,
    directory: PathBuf,
    destination: Destination<'a>,
    registered: Registered<'a>,
    address: SocketAddr,
    serving: PemFiles,
    /// Has signed that.
    trusted: Arc<Authority>,
    /// Or workers.
    threads: usize,
}

/// Starts `target` and waits until a request through it to the upstream is answered.
pub fn start(ground: &mut Ground, target: Target) -> Result<Way> {
    let upstream = ground.upstream()?;
    start_to(ground, target, upstream.destination())
}

/// As [`start`], to another `destination`.
pub fn start_to(ground: &mut Ground, target: Target, destination: Destination<'_>) -> Result<Way> {
    start_registered(ground, target, destination, Registered::default())
}

/// As [`start_to`], to one that gateways know in another way.
pub fn start_registered(
    ground: &mut Ground,
    target: Target,
    destination: Destination<'_>,
    registered: Registered<'_>,
) -> Result<Way> {
    if target == DIRECT {
        return Ok(Way::direct(destination));
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let name = format!("{target} to {} {}", destination.cluster, address.port()).replace([' ', ','], "-");
    let trusted = Arc::new(Authority::new(&format!("{name}-ca")));
    let directory = ground.directory().to_path_buf();
    let plan = Plan {
        serving: trusted.issue(&Leaf::server(&*name).san(GATEWAY_HOST)).write_to(&directory, &name)?,
        trusted,
        address,
        threads: if [OURS_2, NGINX_2, HAPROXY_2].contains(&target) { 2 } else { 1 },
        name,
        directory,
        destination,
        registered,
    };
    let (process, access) = match target {
        NGINX | NGINX_2 => (nginx::start(&plan)?, Access::default()),
        HAPROXY | HAPROXY_2 => (haproxy::start(&plan)?, Access::default()),
        OURS | OURS_2 => gateway::ours(ground, &plan, &ground.program(Program::Gateway)?)?,
        BASELINE => gateway::ours(ground, &plan, &given(ground.given.baseline.as_ref(), "--baseline")?)?,
        GO => gateway::go(ground, &plan, &given(ground.given.go_gateway.as_ref(), "--go-gateway")?)?,
        KARMADA => {
            let program = given(ground.given.karmada.as_ref(), "--karmada")?;
            karmada::start(&*ground.hub()?, &plan, &program)?
        }
        _ => bail!("nobody knows how to start {target}"),
    };
    let mut way = Way {
        address: plan.address,
        prefix: access.prefix,
        headers: access.headers,
        tree: Tree::new([process.id()]),
        trusted: plan.trusted,
        process: Some(process),
        probe: destination.probe.to_owned(),
    };
    way.wait_ready().with_context(|| format!("{target} did not start"))?;
    Ok(way)
}

/// What a client has to know beside the address.
#[derive(Default)]
struct Access {
    prefix: String,
    headers: Vec<String>,
}

fn given(path: Option<&PathBuf>, flag: &str) -> Result<PathBuf> {
    let path = path.ok_or_else(|| Absent::new("its binary", flag))?;
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}

// === impl Way ===

impl Way {
    /// For `path` of the upstream.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{}{path}", self.address, self.prefix)
    }

    /// For connections of an own driver, which may have a certificate.
    pub fn tls(&self, identity: Option<&Issued>, alpn: &[&str]) -> Arc<ClientConfig> {
        pki::client_config(Trust::Authority(&self.trusted), identity, alpn)
    }

    /// Ends its program and starts it again as it was: a fresh one. How long that took, from the start until a request through it was
    /// answered; nothing on the direct way.
    pub fn restart(&mut self) -> Result<Duration> {
        let Some(process) = &mut self.process else { return Ok(Duration::ZERO) };
        process.stop()?;
        // Its supervisor goes a moment before the sockets of a large program do.
        wait::until_true("its port to be free", START_LIMIT, || Ok(TcpStream::connect(self.address).is_err()))?;
        let start = Instant::now();
        process.start_again()?;
        self.tree = Tree::new([process.id()]);
        self.wait_ready()?;
        Ok(start.elapsed())
    }

    fn direct(destination: Destination<'_>) -> Self {
        Self {
            address: destination.address,
            prefix: String::new(),
            headers: vec!["Authorization: Bearer caller".to_owned()], // of a usual length
            tree: destination.tree.clone(),
            trusted: Arc::clone(destination.authority),
            process: None,
            probe: destination.probe.to_owned(),
        }
    }

    fn wait_ready(&mut self) -> Result<()> {
        let client = Client::new(self.address, &self.trusted, None);
        let headers = self.headers.iter().filter_map(|line| line.split_once(": ")).collect::<Vec<_>>();
        let path = format!("{}{}", self.prefix, self.probe);
        let process = &mut self.process;
        wait::until("an answer through it", START_LIMIT, || {
            process.as_mut().map_or(Ok(()), Process::check)?;
            client.get(&path, &headers)?.expect(StatusCode::OK)
        })
        .with_context(|| process.as_ref().map_or_else(String::new, Process::log_tail))?;
        Ok(())
    }
}
