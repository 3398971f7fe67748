//! The proxies that ways lead through, started.

mod gateway;
mod haproxy;
mod karmada;
mod nginx;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use hub_tests::hub::GATEWAY_HOST;
use hub_tests::ports;
use kit::pki::{Authority, Leaf, PemFiles};

use crate::figure::{BASELINE, DIRECT, GO, HAPROXY, KARMADA, NGINX, OURS, Target};
use crate::ground::Ground;
use crate::tool::Absent;
use crate::way::{Destination, Way};
use stage::program::Program;

/// As [`OURS`], [`NGINX`] and [`HAPROXY`], which have one thread (or worker) each, with two.
pub const OURS_2: Target = "ours, 2 threads";
pub const NGINX_2: Target = "nginx, 2 workers";
pub const HAPROXY_2: Target = "haproxy, 2 threads";

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

/// The way to the upstream through `target`, the same one for every scenario.
pub fn way(ground: &mut Ground, target: Target) -> Result<Rc<Way>> {
    if let Some(known) = ground.ways.known(target)? {
        return Ok(known);
    }
    let started = ground.upstream().and_then(|upstream| start_to(ground, target, upstream.destination()));
    ground.ways.keep(target, started)
}

/// Starts `target` and waits until a request through it to `destination` is answered.
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
    let mut way = Way::through(process, plan.address, plan.trusted, destination.probe);
    (way.prefix, way.headers) = (access.prefix, access.headers);
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
