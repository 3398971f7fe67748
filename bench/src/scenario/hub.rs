//! Through the real hub to a real member: what a user of kubectl waits for.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::About;
use crate::aggregated::{self, Gateway, Member, PATH};
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::figure::{Bound, DIRECT, Figure, GO, Goal, HUB, KARMADA, OURS, Sample, Target};
use crate::latency::percentiles;
use crate::proxies::{OURS_CALLER, OURS_KARMADA};
use crate::testbed::{HubSide, Testbed};
use harness::usage::Tree;

/// The hub's aggregator in front of ours.
const HUB_OURS: Target = "hub → ours";
/// The hub's aggregator in front of the Go gateway.
const HUB_GO: Target = "hub → go gateway";
/// The hub's aggregator in front of ours, by which the member is asked as the caller.
const HUB_CALLER: Target = "hub → ours, as the caller";
/// The same on the path of Karmada's server.
const HUB_KARMADA: Target = "hub → ours, karmada path";
/// The hub's aggregator in front of Karmada's own server.
const HUB_THEIRS: Target = "hub → karmada";

/// One request after the other on one connection.
struct Sequence {
    caller: Caller,
    path: String,
    gateway: Option<Rc<Gateway>>,
    /// If the hub is asked.
    hub: Option<Rc<HubSide>>,
    runtime: Runtime,
    _member: Rc<Member>,
}

pub const ABOUT: About = About {
    name: "hub",
    title: "Through the real hub to a real member",
    method: "A real kube-apiserver as hub, with its aggregator, and another as member. One HTTP/2 connection gets a \
         ConfigMap of 1 KiB, one request at a time: from the member directly, through each gateway directly, and \
         through the hub. The hub sends the API group to one gateway at a time. Karmada's own server is asked through \
         the hub only. `hub alone` is the same ConfigMap on the hub, by the same caller.",
    figures: &[
        Figure::new("p50_us", "µs, p50", 0),
        Figure::new("p99_us", "p99", 0),
        Figure::new("gateway_us", "CPU µs per request in the gateway", 0),
        Figure::new("hub_us", "in the hub", 0),
        Figure::new("share", "the gateway's share of both, %", 1),
    ],
    goals: &[
        Goal::value("share", HUB_OURS).must(Bound::AtMost(15.0)),
        Goal::ratio("p50_us", OURS, GO).over(DIRECT).must(Bound::AtMost(0.25)),
        Goal::ratio("p50_us", HUB_OURS, HUB_GO).aim(Bound::AtMost(0.8)),
        Goal::ratio("gateway_us", HUB_KARMADA, HUB_CALLER).must(Bound::AtMost(1.03)),
        Goal::ratio("gateway_us", HUB_KARMADA, HUB_THEIRS).aim(Bound::AtMost(1.0 / 20.0)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let hub = testbed.hub()?;
    let member = Rc::new(Member::start(&hub)?);
    let direct = Sequence::new(member.caller(), PATH.to_owned(), &member);
    let mut contenders = vec![Contender::new(DIRECT, direct)];
    for (target, through, clusters) in [(OURS, HUB_OURS, ["ours-0", "ours-1"]), (GO, HUB_GO, ["go-0", "go-1"])] {
        let [straight, aggregated] = clusters.map(|cluster| Gateway::start(testbed, &member, target, cluster));
        let straight = straight.and_then(|gateway| Sequence::straight(gateway, &member));
        contenders.push(Contender::new(target, straight));
        let aggregated = aggregated.and_then(|gateway| Sequence::through(&hub, gateway, &member));
        contenders.push(Contender::new(through, aggregated));
    }
    for (target, through, cluster) in [
        (OURS_CALLER, HUB_CALLER, "caller-0"),
        (OURS_KARMADA, HUB_KARMADA, "karmada-0"),
        (KARMADA, HUB_THEIRS, "theirs-0"),
    ] {
        let gateway = Gateway::start(testbed, &member, target, cluster);
        let aggregated = gateway.and_then(|gateway| Sequence::through(&hub, gateway, &member));
        contenders.push(Contender::new(through, aggregated));
    }
    contenders.push(Contender::new(HUB, Sequence::on_hub(&hub, &member)));
    Ok(contenders)
}

// === impl Sequence ===

impl Sequence {
    fn new(caller: Caller, path: String, member: &Rc<Member>) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { caller, path, gateway: None, hub: None, runtime, _member: Rc::clone(member) })
    }

    fn straight(gateway: Gateway, member: &Rc<Member>) -> Result<Self> {
        let sequence = Self::new(Caller::on(&gateway.route)?, PATH.to_owned(), member)?;
        Ok(Self { gateway: Some(Rc::new(gateway)), ..sequence })
    }

    fn through(hub: &Rc<HubSide>, gateway: Gateway, member: &Rc<Member>) -> Result<Self> {
        let path = format!("{}{PATH}", gateway.route.prefix);
        let sequence = Self::new(aggregated::administrator(hub), path, member)?;
        Ok(Self { gateway: Some(Rc::new(gateway)), hub: Some(Rc::clone(hub)), ..sequence })
    }

    fn on_hub(hub: &Rc<HubSide>, member: &Rc<Member>) -> Result<Self> {
        let sequence = Self::new(aggregated::administrator(hub), PATH.to_owned(), member)?;
        Ok(Self { hub: Some(Rc::clone(hub)), ..sequence })
    }

    /// Makes the hub send the API group to this one's gateway, and waits until it does.
    fn aggregate(&self) -> Result<()> {
        match (&self.hub, &self.gateway) {
            (Some(hub), Some(gateway)) => gateway.serve(hub, |path| {
                self.runtime.block_on(async {
                    let connection = self.caller.connect().await?;
                    self.caller.ask(&connection, self.caller.get(path)?).await.map(drop)
                })
            }),
            _ => Ok(()),
        }
    }

    async fn ask_until(&self, deadline: Instant) -> Result<Vec<Duration>> {
        let connection = self.caller.connect().await?;
        let mut taken = Vec::new();
        while Instant::now() < deadline {
            let start = Instant::now();
            self.caller.ask(&connection, self.caller.get(&self.path)?).await?;
            taken.push(start.elapsed());
        }
        Ok(taken)
    }
}

impl Load for Sequence {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        self.aggregate()?;
        let trees =
            [self.gateway.as_ref().map(|gateway| gateway.route.tree.clone()), self.hub.as_ref().map(|hub| hub.tree())];
        let used = || trees.iter().map(|tree| tree.as_ref().map(Tree::usage).transpose()).collect::<Result<Vec<_>>>();
        let before = used()?;
        let taken = self.runtime.block_on(self.ask_until(Instant::now() + time))?;
        let after = used()?;
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 requests")]
        let requests = taken.len() as f64;
        let spent = |index: usize| -> Option<f64> {
            Some(after[index]?.cpu.saturating_sub(before[index]?.cpu).as_secs_f64() * 1e6 / requests)
        };
        let (gateway, hub) = (spent(0), spent(1));
        let share = gateway.zip(hub).map(|(gateway, hub)| gateway / (gateway + hub) * 100.0);
        let (p50, p99) = percentiles(taken)?;
        let told = [("gateway_us", gateway), ("hub_us", hub), ("share", share)];
        let told = told.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Ok([("p50_us", p50), ("p99_us", p99)].into_iter().chain(told).collect())
    }
}
