//! Thousands of clusters with agents: at rest, when one falls silent, and when many join.

mod steps;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;

use super::About;
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::controllers::Controllers;
use crate::figure::{Bound, Figure, Goal, HUB, OCM, OURS, Sample};
use crate::given;
use crate::hub_objects;
use crate::joining::agents::Agents;
use crate::joining::beats::Beats;
use crate::joining::{NAMESPACE, clusters, fixture};
use crate::testbed::{HubSide, Testbed};
use crate::watch;

const REST_CORES: Figure = Figure::new("rest_cores", "cores at rest", 4);
const RESIDENT: Figure = Figure::new("rss_mib", "RSS MiB", 1);
const REST_REQUESTS: Figure = Figure::new("rest_requests", "hub requests per minute", 1);
const REST_WRITES: Figure = Figure::new("rest_writes", "writes", 0);
const LATE_P50: Figure = Figure::new("late_p50_ms", "ms that Unknown is late, p50", 0);
const LATE_P99: Figure = Figure::new("late_p99_ms", "p99", 0);
/// Of the hub alone: signed.
const APPROVED: Figure = Figure::new("approved", "joins approved, or certificates signed, per second", 0);
const JOIN_S: Figure = Figure::new("join_s", "s until all are available", 1);
const JOIN_CPU: Figure = Figure::new("join_cpu_ms", "CPU ms per join", 1);

pub const ABOUT: About = About {
    name: "joining",
    title: "5,000 clusters with agents, and 500 that join",
    method: "The controllers with the part `ocm-registration`, the chart's admission policies, and a real hub with \
             5,000 accepted ManagedClusters (or `--managed-clusters`), whose Leases the bench renews once a minute, \
             evenly spread. For twelve \
             times `--seconds` nothing else happens; hub requests are those of the kinds that the part works on, \
             without watches and without the Leases' renewals. Then 20 more clusters, one after the other every \
             quarter of a second, are silent: timed from the moment that their Lease gives until their ManagedCluster \
             says Unknown. Then 500 agents ask at once to join, by the bootstrap account of \
             `--ocm-auto-approve-users`: each makes its ManagedCluster and its request, and with its certificate \
             renews its Lease and says that it is available, for which it tries every quarter of a second at first, \
             and later after an eighth of the time that it has waited, at most 30 s. CPU is that of the controllers. \
             `hub alone` is the hub that signs 500 requests, which the bench approves. With `--ocm-registration`, Open \
             Cluster Management's registration controllers get the same clusters, as the hub's administrator, whom the \
             policies let accept; with ManagedClusterAutoApproval, the same bootstrap account, and their own limit of \
             50 requests a second for each client. The two take turns on one hub: each is started for its measurement, \
             which begins when they make fewer than five requests a second, or after twenty minutes, and is stopped \
             after it.",
    figures: &[REST_CORES, RESIDENT, REST_REQUESTS, REST_WRITES, LATE_P50, LATE_P99, APPROVED, JOIN_S, JOIN_CPU],
    goals: &[
        Goal::value(REST_CORES.key, OURS).must(Bound::AtMost(0.02)),
        Goal::value(RESIDENT.key, OURS).must(Bound::AtMost(80.0)),
        Goal::value(REST_WRITES.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(LATE_P99.key, OURS).must(Bound::AtMost(1000.0)),
        Goal::ratio(APPROVED.key, OURS, HUB).must(Bound::AtLeast(1.0)),
    ],
    axis: None,
};

/// Interval of renewals.
const LEASE: Duration = Duration::from_mins(1);
/// Lease of the clusters that fall silent.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// A measurement that is asked for less time than this is not one that counts.
const WARM_UP: Duration = Duration::from_secs(2);

/// How many there are.
#[derive(Clone, Copy)]
struct Size {
    clusters: usize,
    silent: usize,
    joining: usize,
}

struct Joining {
    controllers: Controllers,
    /// They run only while they are measured, because others accept clusters at other times.
    takes_turns: bool,
    agents: Rc<Agents>,
    size: Size,
    /// Gives each round names of its own.
    round: usize,
    /// How the names of the clusters that join begin, unlike those of other targets.
    crowd: &'static str,
    smoke: bool,
    runtime: Runtime,
    beats: Rc<Beats>,
    side: Rc<HubSide>,
}

/// The hub, on which somebody else approves.
struct Signing {
    agents: Rc<Agents>,
    count: usize,
    round: usize,
    smoke: bool,
    runtime: Runtime,
}

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let size = if testbed.smoke {
        Size { clusters: 10, silent: 2, joining: 4 }
    } else {
        Size { clusters: testbed.size.managed, silent: 20, joining: 500 }
    };
    let joining = Joining::start(testbed, size)?;
    let (agents, smoke) = (Rc::clone(&joining.agents), testbed.smoke);
    let signing = Signing { agents, count: size.joining, round: 0, smoke, runtime: watch::runtime()? };
    let of_ocm = joining.of_ocm(testbed);
    Ok(vec![Contender::ready(OURS, joining), Contender::new(OCM, of_ocm), Contender::ready(HUB, signing)])
}

// === impl Size ===

impl Size {
    /// Name of the cluster `number`; the last ones fall silent.
    fn name(self, number: usize) -> String {
        match number.checked_sub(self.clusters) {
            None => format!("beating-{number:05}"),
            Some(silent) => format!("silent-{silent:05}"),
        }
    }

    fn lease(self, number: usize) -> Duration {
        if number < self.clusters { LEASE } else { SHORT_LEASE }
    }
}

// === impl Joining ===

impl Joining {
    fn start(testbed: &mut Testbed, size: Size) -> Result<Self> {
        let (side, runtime) = (testbed.hub()?, watch::runtime()?);
        let server = &side.hub.server;
        let accounts = fixture::lay(&side, testbed.directory())?;
        let (address, authority) = (server.address(), Arc::clone(server.authority()));
        let hub = Caller::with_certificate(address, &authority, server.admin());
        let bootstrap = Caller::trusting(address, &authority).with_token(&accounts.token)?;
        runtime.block_on(fixture::clear(&hub))?;
        let flags = [format!("--ocm-auto-approve-users={}", fixture::user())];
        let (kubeconfig, part) = (&accounts.controllers, "ocm-registration");
        let controllers = Controllers::start_as(testbed, kubeconfig, NAMESPACE, part, &flags)?;
        let names = (0..size.clusters).map(|number| size.name(number)).collect();
        let beats = Rc::new(Beats::start(hub.clone(), names, LEASE)?);
        let agents = Rc::new(Agents { address, authority, hub, bootstrap });
        let (smoke, takes_turns) = (testbed.smoke, testbed.given.ocm_registration.is_some());
        let (round, crowd) = (0, "joining");
        let mut joining = Self { controllers, takes_turns, agents, size, round, crowd, smoke, runtime, beats, side };
        joining.accept().context("they are not accepted")?;
        if takes_turns {
            joining.controllers.stop()?;
        }
        Ok(joining)
    }

    /// Open Cluster Management's controllers on the same hub, with the same clusters and agents.
    fn of_ocm(&self, testbed: &Testbed) -> Result<Self> {
        let program = testbed.given.ocm_registration.as_ref();
        let program = given::program(program, "its registration controllers", "--ocm-registration")?;
        let flags = [
            "--feature-gates=ManagedClusterAutoApproval=true".to_owned(),
            format!("--auto-approved-csr-users={}", fixture::user()),
        ];
        let called = ("ocm-registration", program.as_path());
        Ok(Self {
            controllers: Controllers::of_ocm(testbed, &self.side, called, NAMESPACE, &flags)?,
            takes_turns: true,
            agents: Rc::clone(&self.agents),
            size: self.size,
            round: 0,
            crowd: "joining-ocm",
            smoke: self.smoke,
            runtime: watch::runtime()?,
            beats: Rc::clone(&self.beats),
            side: Rc::clone(&self.side),
        })
    }

    /// Accepts all clusters, until their agents could renew their Leases.
    fn accept(&mut self) -> Result<()> {
        let size = self.size;
        let make = move |number: usize| {
            let seconds = u32::try_from(size.lease(number).as_secs())?;
            Ok((clusters::collection(), clusters::managed(&size.name(number), true, seconds)))
        };
        let all = size.clusters + size.silent;
        self.runtime.block_on(async {
            hub_objects::create(&self.agents.hub, all, Arc::new(make)).await?;
            self.begin_all().await
        })?;
        self.quiet()
    }
}

impl Load for Joining {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        if !self.smoke && time < WARM_UP {
            return Ok(Sample::new());
        }
        self.round += 1;
        if self.takes_turns {
            self.controllers.start_again()?;
            self.subside()?;
        }
        let mut sample = self.rest(if self.smoke { time } else { 12 * time })?;
        sample.extend(self.fall_silent()?);
        sample.extend(self.join()?);
        if self.takes_turns {
            self.controllers.stop()?;
        }
        Ok(sample)
    }
}

impl Load for Signing {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        if !self.smoke && time < WARM_UP {
            return Ok(Sample::new());
        }
        self.round += 1;
        let signed = self.runtime.block_on(self.agents.signed(&format!("signed-{}", self.round), self.count))?;
        Ok(Sample::from([(APPROVED.key, f64::from(u32::try_from(self.count)?) / signed.as_secs_f64())]))
    }
}
