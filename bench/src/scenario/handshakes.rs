//! The cost of a new request in handshakes where the route has more than a TCP connection.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use api::secret::{ClusterEndpoint, ClusterSecret, ConstEndpoint, Credential, Endpoint, ProxyUrl, Trust};
use hub_tests::ports;
use hub_tests::process::Process;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::pki::{Authority, Leaf};
use kit::proxy::{FakeProxy, ProxyKind};
use serde_json::json;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::About;
use crate::aggregated::register_alone;
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::figure::{Bound, Figure, GO, Goal, OURS, Sample, Target};
use crate::latency::percentiles;
use crate::proxies::{self, Registered};
use crate::route::{Destination, Route};
use crate::testbed::Testbed;
use harness::program::Program;
use harness::usage::Tree;

/// Ours, to a member behind an agent.
const OURS_TUNNEL: Target = "ours, through its tunnel";

const PATH: &str = "/version";
const REQUESTS: usize = 1000;
const SMOKE_REQUESTS: usize = 20;

/// A member and a forward proxy that count, on a thread of their own.
struct World {
    member: FakeMember,
    proxy: FakeProxy,
    tree: Tree,
    runtime: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Requests {
    caller: Caller,
    count: usize,
    runtime: Runtime,
    world: Rc<World>,
    _way: Route,
    _agent: Option<Process>,
}

pub const ABOUT: About = About {
    name: "handshakes",
    title: "New requests on a warm pool: members behind a forward proxy or a tunnel",
    method: "1,000 requests, one after the other, on one connection that has been used before, for a cluster with \
             a `proxy-url` (HTTP CONNECT) or behind a tunnel-agent that is linked to the gateway. The member \
             counts its TLS connections, the proxy its CONNECTs. The Go gateway's tunnel is konnectivity's and is \
             not part of it.",
    figures: &[
        Figure::new("handshakes", "TLS connections to the member per request", 3),
        Figure::new("connects", "CONNECTs per request", 3),
        Figure::new("p50_us", "µs, p50", 0),
        Figure::new("p99_us", "p99", 0),
    ],
    goals: &[
        Goal::value("handshakes", OURS).must(Bound::AtMost(0.0)),
        Goal::value("connects", OURS).must(Bound::AtMost(0.0)),
        Goal::value("handshakes", OURS_TUNNEL).must(Bound::AtMost(0.0)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let world = Rc::new(World::start()?);
    Ok(vec![
        Contender::new(OURS, proxied(testbed, &world, OURS, "proxied-ours")),
        Contender::new(GO, proxied(testbed, &world, GO, "proxied-go")),
        Contender::new(OURS_TUNNEL, tunnelled(testbed, &world, "tunnelled-ours")),
    ])
}

/// The member's, behind `endpoint`.
fn secret(world: &World, endpoint: ClusterEndpoint) -> ClusterSecret {
    let trust = Trust::Bundle(world.member.ca_pem().into());
    ClusterSecret::new(endpoint, trust, Credential::Token("member-token".to_owned().into()))
}

/// The member behind the proxy, under the name `cluster`.
fn proxied(testbed: &mut Testbed, world: &Rc<World>, target: Target, cluster: &str) -> Result<Requests> {
    let url = Endpoint::parse(&world.member.url(), false)?;
    let proxy = Some(ProxyUrl::parse(&world.proxy.url())?);
    let endpoint = ClusterEndpoint::Const(ConstEndpoint { url, proxy, fallbacks: Vec::new() });
    register_alone(&*testbed.hub()?, cluster, &secret(world, endpoint))?;
    let registered = Registered { namespace: Some(cluster), ..Registered::default() };
    let route = proxies::start_registered(testbed, target, world.destination(cluster), registered)?;
    Requests::new(testbed, world, route, None)
}

/// The member behind an agent, which links to the gateway itself.
fn tunnelled(testbed: &mut Testbed, world: &Rc<World>, cluster: &str) -> Result<Requests> {
    register_alone(&*testbed.hub()?, cluster, &secret(world, ClusterEndpoint::ClusterProxy))?;
    let identity = format!("system:tunnel-agent:{cluster}");
    let user = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": identity}]);
    testbed.hub()?.hub.allow_agent(cluster, &user, &[cluster])?;
    let directory = testbed.file(cluster);
    fs::create_dir_all(&directory)?;
    let agents = Authority::new("bench-agents-ca");
    let ca = agents.write_to(&directory, "agents-ca")?;
    let identity = agents.issue(&Leaf::client(identity)).write_to(&directory, "agent")?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let serving = agents.issue(&Leaf::server("gateway")).write_to(&directory, "gateway")?;
    let flags = [
        format!("--tunnel-listen={listen}"),
        format!("--tunnel-client-ca-file={}", ca.display()),
        format!("--tunnel-tls-cert-file={}", serving.certificate.display()),
        format!("--tunnel-tls-private-key-file={}", serving.key.display()),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let registered = Registered { namespace: Some(cluster), flags: &flags, token: None };
    // It waits for the gateway, which is waited for until the agent is linked.
    let agent = Process::start(
        "bench-agent",
        &testbed.program(Program::TunnelAgent)?,
        [
            format!("--cluster={cluster}"),
            format!("--server={listen}"),
            format!("--server-ca-file={}", ca.display()),
            format!("--cert-file={}", identity.certificate.display()),
            format!("--key-file={}", identity.key.display()),
            format!("--api-server={}", world.member.address()),
            "--admin-listen=127.0.0.1:0".to_owned(),
        ],
        &directory,
    )?;
    let route = proxies::start_registered(testbed, OURS, world.destination(cluster), registered)?;
    Requests::new(testbed, world, route, Some(agent))
}

// === impl World ===

impl World {
    fn start() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || drop(runtime.block_on(ended)));
        let (member, proxy) = handle.block_on(async {
            let member = FakeMember::start(MemberOptions::default()).await;
            member.on(PATH, |_| Reply::full(200, &[], "{}"));
            (member, FakeProxy::start(ProxyKind::Http).await)
        });
        let tree = Tree::new([std::process::id()]);
        Ok(Self { member, proxy, tree, runtime: handle, end: Some(end), thread: Some(thread) })
    }

    fn destination<'a>(&'a self, cluster: &'a str) -> Destination<'a> {
        Destination {
            cluster,
            address: self.member.address(),
            authority: self.member.authority(),
            tree: &self.tree,
            probe: PATH,
            upgrades: false,
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

// === impl Requests ===

impl Requests {
    fn new(testbed: &Testbed, world: &Rc<World>, route: Route, agent: Option<Process>) -> Result<Self> {
        Ok(Self {
            caller: Caller::on(&route)?,
            count: if testbed.smoke { SMOKE_REQUESTS } else { REQUESTS },
            runtime: Builder::new_current_thread().enable_all().build()?,
            world: Rc::clone(world),
            _way: route,
            _agent: agent,
        })
    }
}

impl Load for Requests {
    fn measure(&mut self, _: Duration) -> Result<Sample> {
        let Self { caller, count, runtime, world, .. } = self;
        runtime.block_on(async {
            let connection = caller.connect().await?;
            let ask = async || caller.ask(&connection, caller.get(PATH)?).await;
            ask().await?;
            let before = (world.member.connections_accepted(), world.proxy.asked().len());
            let mut taken = Vec::with_capacity(*count);
            for _ in 0..*count {
                let start = tokio::time::Instant::now();
                ask().await?;
                taken.push(start.elapsed());
            }
            let after = (world.member.connections_accepted(), world.proxy.asked().len());
            #[expect(clippy::cast_precision_loss, reason = "thousands")]
            let each = |after: usize, before: usize| (after - before) as f64 / taken.len() as f64;
            let (handshakes, connects) = (each(after.0, before.0), each(after.1, before.1));
            let (p50, p99) = percentiles(taken)?;
            Ok(Sample::from([("handshakes", handshakes), ("connects", connects), ("p50_us", p50), ("p99_us", p99)]))
        })
    }
}
