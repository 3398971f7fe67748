//! Ten thousand clusters of Cluster API: registered, restarted with, rewritten, rotated.

mod steps;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use api::secret::{ClusterEndpoint, ClusterSecret, Credential, Endpoint, Trust};
use tokio::runtime::Runtime;

use super::About;
use crate::aggregated::register_in;
use crate::caller::Caller;
use crate::clusters::token;
use crate::contender::{Contender, Load};
use crate::controllers::Controllers;
use crate::figure::{Bound, Figure, Goal, OURS, Sample};
use crate::proxies::{self, Registered};
use crate::registration::sources::{self, Sources};
use crate::route::Route;
use crate::stand_in::StandIn;
use crate::testbed::{HubSide, Testbed};
use crate::watch;
use crate::watch::upstream::Upstream;

const START_S: Figure = Figure::new("start_s", "s until all are written", 1);
const START_WAIT: Figure = Figure::new("start_wait", "% of it waiting", 1);
const START_CPU: Figure = Figure::new("start_cpu_ms", "CPU ms per cluster", 2);
const HUB_S: Figure = Figure::new("hub_s", "s for the hub to write as many", 1);
const KNOWN_S: Figure = Figure::new("known_s", "s more until the gateway has all", 2);
const ASKED_S: Figure = Figure::new("asked_s", "s to ask each once", 1);
const AGAIN_S: Figure = Figure::new("again_s", "s of a restart", 1);
const AGAIN_CPU: Figure = Figure::new("again_cpu_s", "CPU s of it", 2);
const AGAIN_REQUESTS: Figure = Figure::new("again_requests", "hub requests per cluster", 2);
const AGAIN_WRITES: Figure = Figure::new("again_writes", "writes", 0);
const TOUCH_CPU: Figure = Figure::new("touch_us", "CPU µs per no-op rewrite", 0);
const TOUCH_WRITES: Figure = Figure::new("touch_writes", "writes of all", 0);
const TOUCH_GATEWAY: Figure = Figure::new("touch_gateway_us", "CPU µs each, gateway", 1);
const TOUCH_CONNECTIONS: Figure = Figure::new("touch_connections", "its connections more or less", 0);
const RESIDENT: Figure = Figure::new("rss_mib", "RSS MiB", 1);
const GATEWAY_KIB: Figure = Figure::new("gateway_kib", "KiB per cluster, gateway", 1);
const P50: Figure = Figure::new("p50_ms", "ms of a rotation, p50", 1);
const P99: Figure = Figure::new("p99_ms", "p99", 1);
const BACKLOG: Figure = Figure::new("backlog", "backlog after as many rotations as clusters", 0);
const BEHIND_MS: Figure = Figure::new("behind_ms", "ms until it was gone", 0);
const ROTATION_CPU: Figure = Figure::new("rotation_cpu_ms", "CPU ms per rotation", 2);

pub const ABOUT: About = About {
    name: "registration",
    title: "10,000 clusters of Cluster API, registered by themselves",
    method: "The controllers with the source `capi`, a real hub with 10,000 Clusters and their kubeconfig Secrets, and \
             a gateway of ours; all clusters lead to one upstream. Every second one has a client certificate (RSA), \
             the others a token of 900 bytes. First no cluster Secret is there, and the controllers are started: until \
             all are registered, until the gateway has all, and then until each has been asked once, which is mostly \
             10,000 handshakes and reviews. Waiting is the time in which the controllers use no CPU. Beside it, how \
             long the hub takes to write the 10,000 kubeconfig Secrets, by as many requests at once (16). Then the \
             controllers are restarted; then each kubeconfig Secret is rewritten with another annotation. Then one \
             token after the other is rotated at its source, timed from sending that write until the first request \
             with it, for twice `--seconds`; then 10,000 are rotated in twelve times `--seconds`. The backlog is what \
             is not yet written at the end of these. CPU is that of the controllers unless it says otherwise.",
    figures: &[
        START_S,
        START_WAIT,
        START_CPU,
        HUB_S,
        KNOWN_S,
        ASKED_S,
        AGAIN_S,
        AGAIN_CPU,
        AGAIN_REQUESTS,
        AGAIN_WRITES,
        TOUCH_CPU,
        TOUCH_WRITES,
        TOUCH_GATEWAY,
        TOUCH_CONNECTIONS,
        RESIDENT,
        GATEWAY_KIB,
        P50,
        P99,
        BACKLOG,
        BEHIND_MS,
        ROTATION_CPU,
    ],
    goals: &[
        Goal::value(START_S.key, OURS).must(Bound::AtMost(60.0)),
        Goal::value(START_WAIT.key, OURS).must(Bound::AtLeast(80.0)),
        Goal::value(KNOWN_S.key, OURS).must(Bound::AtMost(1.0)),
        Goal::value(AGAIN_S.key, OURS).must(Bound::AtMost(10.0)),
        Goal::value(AGAIN_CPU.key, OURS).must(Bound::AtMost(5.0)),
        Goal::value(AGAIN_REQUESTS.key, OURS).must(Bound::AtMost(ONE_EACH)),
        Goal::value(AGAIN_WRITES.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(TOUCH_CPU.key, OURS).must(Bound::AtMost(150.0)),
        Goal::value(TOUCH_WRITES.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(TOUCH_GATEWAY.key, OURS).must(Bound::AtMost(NO_EVENT)),
        Goal::value(TOUCH_CONNECTIONS.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(RESIDENT.key, OURS).must(Bound::AtMost(120.0)),
        Goal::value(P50.key, OURS).must(Bound::AtMost(100.0)),
        Goal::value(P99.key, OURS).must(Bound::AtMost(500.0)),
        Goal::value(BACKLOG.key, OURS).must(Bound::AtMost(AT_WORK)),
    ],
    axis: None,
};

/// One GET of each kubeconfig Secret, and the pages of the lists.
const ONE_EACH: f64 = 1.1;
/// CPU µs of the gateway, which gets no event of a no-op rewrite: what it does by itself meanwhile,
/// with all its members connected.
const NO_EVENT: f64 = 10.0;
/// What the controllers write at a time: no backlog, but work.
const AT_WORK: f64 = 16.0;
const MANY: usize = 10_000;
/// Number in its place, to try.
const SMOKE: usize = 40;
/// Namespace of the cluster Secrets.
const NAMESPACE: &str = "registration";
/// A cluster that a person registered, by which the gateway is tried while it has no other.
const BY_HAND: &str = "by-hand";
const UPSTREAM: &str = "registration";
/// Reviews of one permission every ten seconds would be a load of their own.
const FLAGS: [&str; 2] =
    ["--authorization-webhook-cache-authorized-ttl=30m", "--authorization-always-allow-paths=/readyz,/metrics"];
/// A measurement that is asked for less time than this is not one that counts.
const WARM_UP: Duration = Duration::from_secs(2);

struct Registration {
    controllers: Controllers,
    gateway: Route,
    /// Caller of the gateway.
    caller: Caller,
    sources: Arc<Sources>,
    /// Makes each rotation bring another token.
    turn: usize,
    smoke: bool,
    runtime: Runtime,
    _upstream: Upstream,
    _side: Rc<HubSide>,
}

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    let count = if testbed.smoke { SMOKE } else { MANY };
    vec![Contender::new(OURS, Registration::start(testbed, count))]
}

// === impl Registration ===

impl Registration {
    fn start(testbed: &mut Testbed, count: usize) -> Result<Self> {
        let (side, runtime) = (testbed.hub()?, watch::runtime()?);
        let upstream = Upstream::start(testbed.directory(), UPSTREAM)?;
        let gateway = gateway(testbed, &side, &upstream)?;
        let sources = Arc::new(Sources::lay(&runtime, &side, count, upstream.stand_in())?);
        let flags = [format!("--watch-namespaces={}", sources::NAMESPACE)];
        let controllers = Controllers::start_in(testbed, &side, NAMESPACE, "capi", &flags)?;
        let caller = Caller::on(&gateway)?.without_prefix();
        let smoke = testbed.smoke;
        let mut registration = Self {
            controllers,
            gateway,
            caller,
            sources,
            turn: count,
            smoke,
            runtime,
            _upstream: upstream,
            _side: side,
        };
        registration.wait_registered().context("they are not registered")?;
        Ok(registration)
    }
}

/// A gateway of the namespace, with one cluster that is registered by hand.
fn gateway(testbed: &mut Testbed, side: &HubSide, upstream: &Upstream) -> Result<Route> {
    let StandIn { address, authority, .. } = upstream.stand_in();
    let endpoint = ClusterEndpoint::at(Endpoint::parse(&format!("https://{address}"), false)?);
    let trust = Trust::Bundle(authority.root_pem().into());
    let secret = ClusterSecret::new(endpoint, trust, Credential::Token(token(0).into()));
    register_in(side, NAMESPACE, BY_HAND, &secret)?;
    let registered = Registered { namespace: Some(NAMESPACE), flags: &FLAGS, token: None };
    proxies::start_registered(testbed, OURS, upstream.called(BY_HAND), registered)
}

impl Load for Registration {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        if !self.smoke && time < WARM_UP {
            return Ok(Sample::new());
        }
        let mut sample = self.register(time)?;
        sample.extend(self.start_again(time)?);
        sample.extend(self.touch_all()?);
        sample.extend(self.rotate_each(2 * time)?);
        sample.extend(self.rotate_all(if self.smoke { time } else { 12 * time })?);
        Ok(sample)
    }
}
