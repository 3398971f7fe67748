//! Steps of the delivery measurement, one after the other.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::usage::Usage;
use hub_tests::wait;
use tokio::time::{Instant, sleep};

use super::{
    Delivery, ILL_P50, ILL_P99, NEW_CPU, NEW_GATEWAY, NEW_RESIDENT, NEW_S, NEW_WRITES, OF_SETS, P50, P99, RESIDENT,
    REST_CORES, REST_GATEWAY, REST_REQUESTS, REST_WRITES, START_CPU, START_S, START_WRITES, TRACKED,
};
use crate::delivery::members::Counts;
use crate::delivery::objects;
use crate::delivery::server::{FINE, FLAPS, HANGS};
use crate::delivery::writes::{self, Writes};
use crate::figure::Sample;
use crate::latency::percentiles;
use crate::size::Size;
use crate::watch::memory;

/// The members that are ill for a while.
const HANGING: usize = 0;
const FLAPPING: usize = 1;
/// Interval between changes of their works.
const AGAIN: Duration = Duration::from_secs(1);
/// Time without a request to a member or a write on the hub after which it is done.
const REST: Duration = Duration::from_secs(3);
/// The same in a trial run.
const REST_TRIED: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(250);
/// Limit for every step.
const LIMIT: Duration = Duration::from_mins(15);
const SETTLE: Duration = Duration::from_secs(5);
const OBJECTS: &str = "cluster_gateway_delivery_objects";
const MIB: f64 = 1_048_576.0;

/// Requests and writes up to now.
#[derive(Clone, Copy, PartialEq)]
struct Said {
    members: Counts,
    writes: Writes,
}

// === impl Delivery ===

impl Delivery {
    /// Waits until all is applied and reported, and returns that time.
    pub fn wait_applied(&mut self) -> Result<Instant> {
        let wanted = number(self.size.objects());
        wait::until("all to be applied", LIMIT, || {
            let applied = self.controllers.metric_of(OBJECTS, "applied")?;
            ensure!((applied - wanted).abs() < 0.5, "{applied} of {wanted}");
            Ok(())
        })?;
        self.quiet()
    }

    fn said(&self) -> Result<Said> {
        self.runtime.block_on(async {
            let (members, writes) = (self.members.counts().await?, writes::count(&self.hub).await?);
            Ok(Said { members, writes })
        })
    }

    /// Waits until nothing is asked or written any more. When that began.
    pub fn quiet(&self) -> Result<Instant> {
        let begin = Instant::now();
        let (mut last, mut since) = (self.said()?, begin);
        let rest = if self.smoke { REST_TRIED } else { REST };
        while since.elapsed() < rest {
            ensure!(begin.elapsed() < LIMIT, "it does not come to rest");
            self.runtime.block_on(async { sleep(LOOK).await });
            let now = self.said()?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(since)
    }

    pub fn resident(&self) -> Result<f64> {
        self.runtime.block_on(memory::settled(&self.controllers.tree, SETTLE))
    }

    /// Bytes of works that the controllers keep in memory.
    pub fn kept(&mut self) -> Result<f64> {
        self.controllers.metric("cluster_gateway_delivery_kept_bytes")
    }

    pub fn start_anew(&mut self) -> Result<Sample> {
        // The last change is reported a moment later.
        self.quiet()?;
        let before = self.said()?.writes.all;
        let begin = Instant::now();
        self.controllers.restart()?;
        let done = self.wait_applied()?;
        let cpu = self.controllers.tree.usage()?.cpu;
        Ok([
            (START_S.key, done.duration_since(begin).as_secs_f64()),
            (START_CPU.key, cpu.as_secs_f64()),
            (START_WRITES.key, self.said()?.writes.all - before),
        ]
        .into())
    }

    /// Nothing happens.
    pub fn rest(&mut self, time: Duration) -> Result<Sample> {
        let (before, used, begin) = (self.said()?, self.used()?, Instant::now());
        self.runtime.block_on(async { sleep(time).await });
        let (took, now, after) = (begin.elapsed(), self.said()?, self.used()?);
        let minutes = took.as_secs_f64() / 60.0;
        let cores = |index: usize| spent(&used, &after, index).as_secs_f64() / took.as_secs_f64();
        let resident = self.resident()?;
        Ok([
            (REST_WRITES.key, (now.writes.all - before.writes.all) / minutes),
            (REST_REQUESTS.key, count(now.members.requests - before.members.requests) / minutes),
            (REST_CORES.key, cores(0)),
            (REST_GATEWAY.key, cores(1)),
            (RESIDENT.key, resident / MIB),
            (TRACKED.key, (resident - self.kept()? - self.idle) / 1024.0 / number(self.size.objects())),
        ]
        .into())
    }

    /// Another template for every cluster.
    pub fn new_template(&mut self) -> Result<Sample> {
        let (before, used, resident, begin) = (self.said()?, self.used()?, self.resident()?, Instant::now());
        let text = self.another();
        self.runtime.block_on(objects::edit_template(&self.hub, &text))?;
        // It is quiet before the change begins, too, and reports of applied objects are still
        // written.
        self.runtime.block_on(self.wait_everywhere(&text))?;
        let done = self.quiet()?;
        self.wait_applied()?;
        let (after, now) = (self.used()?, self.said()?);
        let applied = number(self.size.clusters * Size::OBJECTS);
        let each = |index: usize| spent(&used, &after, index).as_secs_f64() * 1e3 / applied;
        let (all, of_sets) = (now.writes.all - before.writes.all, now.writes.of_sets - before.writes.of_sets);
        // That of the template.
        let own = 1.0;
        Ok([
            (NEW_S.key, done.duration_since(begin).as_secs_f64()),
            (NEW_CPU.key, each(0)),
            (NEW_GATEWAY.key, each(1)),
            (NEW_WRITES.key, (all - of_sets) / number(self.size.clusters)),
            (OF_SETS.key, of_sets - own),
            (NEW_RESIDENT.key, self.resident()? / resident),
        ]
        .into())
    }

    /// Waits until each member has the template that says `text`.
    async fn wait_everywhere(&self, text: &str) -> Result<()> {
        let (connection, path, begin) = (self.members.connect().await?, objects::template_path(), Instant::now());
        for number in 0..self.size.clusters {
            while !self.members.says(&connection, number, &path, text).await? {
                ensure!(begin.elapsed() < LIMIT, "member {number} does not get the new template");
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Changes of one member after the other, without and with two that are ill.
    pub fn ill(&mut self, time: Duration) -> Result<Sample> {
        let (p50, p99) = percentiles(self.change_each(time)?)?;
        self.feel(HANGS, FLAPS)?;
        let beside = self.change_each(time);
        self.feel(FINE, FINE)?;
        let (ill_p50, ill_p99) = percentiles(beside?)?;
        for number in [HANGING, FLAPPING] {
            let text = self.another();
            self.runtime.block_on(objects::touch(&self.hub, number, &text))?;
        }
        self.wait_applied()?;
        Ok([(P50.key, p50 / 1e3), (P99.key, p99 / 1e3), (ILL_P50.key, ill_p50 / p50), (ILL_P99.key, ill_p99 / p99)]
            .into())
    }

    fn feel(&self, hanging: &str, flapping: &str) -> Result<()> {
        self.runtime.block_on(async {
            self.members.feel(HANGING, hanging).await?;
            self.members.feel(FLAPPING, flapping).await
        })
    }

    /// Time of each single change, until its member had it. The two that are ill at times are
    /// changed each second too, without a wait.
    pub fn change_each(&mut self, time: Duration) -> Result<Vec<Duration>> {
        let (begin, mut taken, mut at, path) = (Instant::now(), Vec::new(), FLAPPING, objects::probe_path());
        let connection = self.runtime.block_on(self.members.connect())?;
        let mut next = begin;
        while begin.elapsed() < time {
            let text = self.another();
            if next <= Instant::now() {
                next += AGAIN;
                for number in [HANGING, FLAPPING] {
                    self.runtime.block_on(objects::edit_probe(&self.hub, number, &text))?;
                }
            }
            at = (at + 1) % self.size.clusters;
            if at <= FLAPPING {
                continue;
            }
            taken.push(self.runtime.block_on(async {
                let begin = Instant::now();
                objects::edit_probe(&self.hub, at, &text).await?;
                self.members.wait_for(&connection, at, &path, &text).await?;
                anyhow::Ok(begin.elapsed())
            })?);
        }
        Ok(taken)
    }

    fn another(&mut self) -> String {
        self.changes += 1;
        format!("change-{}-", self.changes)
    }

    fn used(&self) -> Result<[Usage; 2]> {
        let [controllers, gateway] = self.trees();
        Ok([controllers.usage()?, gateway.usage()?])
    }
}

fn spent(before: &[Usage; 2], after: &[Usage; 2], index: usize) -> Duration {
    after[index].cpu.saturating_sub(before[index].cpu)
}

fn number(count: usize) -> f64 {
    self::count(u64::try_from(count).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}
