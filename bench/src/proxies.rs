//! The proxies that ways lead through, started.

mod dialects;
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

pub use self::dialects::{OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER};
use crate::figure::{BASELINE, DIRECT, GO, HAPROXY, KARMADA, NGINX, OURS, Target};
use crate::given;
use crate::route::{Destination, Route};
use crate::testbed::Testbed;
use harness::program::Program;

/// [`OURS`], [`NGINX`] and [`HAPROXY`] have one thread (or worker) each; these have two.
pub const OURS_2: Target = "ours, 2 threads";
pub const NGINX_2: Target = "nginx, 2 workers";
pub const HAPROXY_2: Target = "haproxy, 2 threads";
/// How an absent program of a target is called: the target is named beside it.
const BINARY: &str = "its binary";

/// How gateways of the hub know the destination, and their further flags.
#[derive(Clone, Copy, Default)]
pub struct Registered<'a> {
    /// The namespace in which the caller has put its Secret; none: it is put where the others are.
    pub namespace: Option<&'a str>,
    pub flags: &'a [&'a str],
    /// The token that the destination accepts; none: the stand-ins' own. For [`KARMADA`], which has
    /// its own Secret.
    pub token: Option<&'a str>,
}

/// Parameters for the start of every proxy.
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
    /// Threads or workers.
    threads: usize,
}

/// The way to the upstream through `target`, the same one for every scenario.
pub fn route(testbed: &mut Testbed, target: Target) -> Result<Rc<Route>> {
    if let Some(known) = testbed.routes.known(target)? {
        return Ok(known);
    }
    let started = testbed.upstream().and_then(|upstream| start_to(testbed, target, upstream.destination()));
    testbed.routes.keep(target, started)
}

/// Starts `target` and waits until a request through it to `destination` is answered.
pub fn start_to(testbed: &mut Testbed, target: Target, destination: Destination<'_>) -> Result<Route> {
    start_registered(testbed, target, destination, Registered::default())
}

/// As [`start_to`], to a destination that is registered in another way.
pub fn start_registered(
    testbed: &mut Testbed,
    target: Target,
    destination: Destination<'_>,
    registered: Registered<'_>,
) -> Result<Route> {
    if target == DIRECT {
        return Ok(Route::direct(destination));
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let name = format!("{target} to {} {}", destination.cluster, address.port()).replace([' ', ','], "-");
    let trusted = Arc::new(Authority::new(&format!("{name}-ca")));
    let directory = testbed.directory().to_path_buf();
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
        OURS | OURS_2 => gateway::ours(testbed, &plan, &testbed.program(Program::Gateway)?, &[])?,
        OURS_CALLER | OURS_KARMADA | OURS_KCP | OURS_USER_SERVER => {
            dialects::start(testbed, &plan, &testbed.program(Program::Gateway)?, target)?
        }
        BASELINE => {
            let program = given::program(testbed.given.baseline.as_ref(), BINARY, "--baseline")?;
            gateway::ours(testbed, &plan, &program, &[])?
        }
        GO => {
            let program = given::program(testbed.given.go_gateway.as_ref(), BINARY, "--go-gateway")?;
            gateway::go(testbed, &plan, &program)?
        }
        KARMADA => {
            let program = given::program(testbed.given.karmada.as_ref(), BINARY, "--karmada")?;
            karmada::start(&*testbed.hub()?, &plan, &program)?
        }
        _ => bail!("nobody knows how to start {target}"),
    };
    let address = access.address.unwrap_or(plan.address);
    let mut route = Route::through(process, address, plan.trusted, destination.probe);
    (route.prefix, route.headers) = (access.prefix, access.headers);
    route.wait_ready().with_context(|| format!("{target} did not start"))?;
    Ok(route)
}

/// Parameters for the client.
#[derive(Default)]
struct Access {
    /// An address other than the planned one.
    address: Option<SocketAddr>,
    prefix: String,
    headers: Vec<String>,
}
