//! Steps of the measurement of clusters with agents, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use time::OffsetDateTime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    APPROVED, JOIN_CPU, JOIN_S, Joining, LATE_P50, LATE_P99, RESIDENT, REST_CORES, REST_REQUESTS, REST_WRITES,
    SHORT_LEASE,
};
use crate::caller::Caller;
use crate::figure::Sample;
use crate::hub_objects::MANY;
use crate::joining::clusters;
use crate::latency::percentiles;
use crate::metrics::Asked;
use crate::watch::memory;

/// Time without a write on the hub after which it is done.
const REST: Duration = Duration::from_secs(3);
/// The same in a trial run.
const REST_TRIED: Duration = Duration::from_millis(500);
/// Time in which controllers that were just started make fewer requests a second than [`LITTLE`]:
/// their first pass is over. After [`PATIENCE`], this counts as what they do at rest.
const SUBSIDED: Duration = Duration::from_secs(15);
const LITTLE: f64 = 5.0;
const PATIENCE: Duration = Duration::from_mins(20);
const LOOK: Duration = Duration::from_millis(250);
/// Limit for every step.
const LIMIT: Duration = Duration::from_mins(45);
const SETTLE: Duration = Duration::from_secs(5);
/// Renewals that may be missing.
const TIMES: u32 = 5;
/// Age of the last renewal of a cluster that falls silent.
const AGO: Duration = Duration::from_secs(3);
/// Time between two that fall silent.
const APART: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(5);
const MIB: f64 = 1_048_576.0;

// === impl Joining ===

impl Joining {
    /// Requests for the kinds that the part works on.
    async fn asked(&self) -> Result<Asked> {
        let hub = &self.agents.hub;
        let connection = hub.connect().await?;
        let text = hub.ask(&connection, hub.get("/metrics")?).await?;
        Ok(Asked::of(&String::from_utf8_lossy(&text), |labels| {
            let groups =
                ["open-cluster-management.io\"", "group=\"rbac.authorization.k8s.io\"", "certificates.k8s.io\""];
            groups.iter().any(|group| labels.contains(group))
                || ["resource=\"events\"", "resource=\"namespaces\""].iter().any(|of| labels.contains(of))
        }))
    }

    /// Waits until nothing is written any more.
    pub fn quiet(&mut self) -> Result<()> {
        let begin = Instant::now();
        let rest = if self.smoke { REST_TRIED } else { REST };
        self.runtime.block_on(async {
            let (mut last, mut since) = (self.asked().await?.writes, begin);
            while since.elapsed() < rest {
                ensure!(begin.elapsed() < LIMIT, "it does not come to rest");
                sleep(LOOK).await;
                let now = self.asked().await?.writes;
                if (now - last).abs() > 0.5 {
                    (last, since) = (now, Instant::now());
                }
            }
            Ok(())
        })
    }

    /// Waits until the controllers, which were just started, make few requests, or for
    /// [`PATIENCE`].
    pub fn subside(&self) -> Result<()> {
        let (begin, time) = (Instant::now(), if self.smoke { REST_TRIED } else { SUBSIDED });
        self.runtime.block_on(async {
            let mut last = self.asked().await?.requests;
            loop {
                sleep(time).await;
                let now = self.asked().await?.requests;
                if now - last < LITTLE * time.as_secs_f64() || begin.elapsed() > PATIENCE {
                    return Ok(());
                }
                last = now;
            }
        })
    }

    /// Each agent reports its cluster as available, as soon as it can.
    pub async fn begin_all(&self) -> Result<()> {
        let (next, all) = (Arc::new(AtomicUsize::new(0)), self.size.clusters + self.size.silent);
        let connection = self.agents.hub.connect().await?;
        let mut workers = JoinSet::new();
        for _ in 0..MANY {
            let (next, size, hub, connection) =
                (Arc::clone(&next), self.size, self.agents.hub.clone(), connection.clone());
            workers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all {
                        return anyhow::Ok(());
                    }
                    clusters::begin(&hub, &connection, &size.name(number)).await?;
                }
            });
        }
        while let Some(done) = workers.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Nothing happens but renewals.
    pub fn rest(&mut self, time: Duration) -> Result<Sample> {
        // Upstream's may write for ever; it was waited for already.
        if self.controllers.is_ours() {
            self.quiet()?;
        }
        let (before, used, begin) =
            (self.runtime.block_on(self.asked())?, self.controllers.tree.usage()?, Instant::now());
        self.runtime.block_on(async { sleep(time).await });
        let (cpu, took) = (self.controllers.tree.cpu_since(used)?, begin.elapsed());
        let asked = self.runtime.block_on(self.asked())?.since(before);
        let resident = self.runtime.block_on(memory::settled(&self.controllers.tree, SETTLE.min(time)))?;
        Ok([
            (REST_CORES.key, cpu.as_secs_f64() / took.as_secs_f64()),
            (RESIDENT.key, resident / MIB),
            (REST_REQUESTS.key, asked.requests * 60.0 / took.as_secs_f64()),
            (REST_WRITES.key, asked.writes),
        ]
        .into())
    }

    /// The delay until each is Unknown.
    pub fn fall_silent(&self) -> Result<Sample> {
        let late = self.runtime.block_on(async {
            let (mut running, mut late) = (JoinSet::new(), Vec::new());
            for number in self.size.clusters..self.size.clusters + self.size.silent {
                running.spawn(silence(self.agents.hub.clone(), self.size.name(number)));
                sleep(APART).await;
            }
            while let Some(done) = running.join_next().await {
                late.push(done??);
            }
            anyhow::Ok(late)
        })?;
        let (p50, p99) = percentiles(late)?;
        Ok([(LATE_P50.key, p50 / 1e3), (LATE_P99.key, p99 / 1e3)].into())
    }

    pub fn join(&self) -> Result<Sample> {
        let (count, crowd) = (self.size.joining, format!("{}-{}", self.crowd, self.round));
        let used = self.controllers.tree.usage()?;
        let took = self.runtime.block_on(self.agents.join(&crowd, count))?;
        let cpu = self.controllers.tree.cpu_since(used)?;
        let count = f64::from(u32::try_from(count)?);
        Ok([
            (APPROVED.key, count / took.approved.as_secs_f64()),
            (JOIN_S.key, took.available.as_secs_f64()),
            (JOIN_CPU.key, cpu.as_secs_f64() * 1e3 / count),
        ]
        .into())
    }
}

/// Renews the Lease of `cluster` for the last time, some time ago. How long after its grace it was
/// Unknown.
async fn silence(hub: Caller, cluster: String) -> Result<Duration> {
    let connection = hub.connect().await?;
    let due = Instant::now() + TIMES * SHORT_LEASE - AGO;
    clusters::greet(&hub, &connection, &cluster, OffsetDateTime::now_utc() - AGO).await?;
    ensure!(Instant::now() < due, "{cluster} was not available in time");
    sleep_until(due).await;
    while clusters::available(&hub, &connection, &cluster).await?.as_deref() != Some("Unknown") {
        ensure!(due.elapsed() < LIMIT, "{cluster} is available for ever");
        sleep(PAUSE).await;
    }
    Ok(due.elapsed())
}
