//! Steps of the registration measurement, one after the other.

use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use harness::usage::Usage;
use hub_tests::wait;
use tokio::time::{Instant, sleep};

use super::{
    AGAIN_CPU, AGAIN_REQUESTS, AGAIN_S, AGAIN_WRITES, ASKED_S, BACKLOG, BEHIND_MS, GATEWAY_KIB, HUB_S, KNOWN_S,
    NAMESPACE, P50, P99, RESIDENT, ROTATION_CPU, Registration, START_CPU, START_S, START_WAIT, TOUCH_CONNECTIONS,
    TOUCH_CPU, TOUCH_GATEWAY, TOUCH_WRITES,
};
use crate::clusters::{path, paths, token};
use crate::figure::Sample;
use crate::latency::percentiles;
use crate::metrics::Asked;
use crate::watch::{closed_loop, memory};

const OBJECTS: &str = "cluster_gateway_controllers_source_objects";
const WRITES: &str = "cluster_gateway_controllers_secret_writes_total";
const LOOKS: &str = "cluster_gateway_controllers_queue_work_seconds_count";
const CLUSTERS: &str = "cluster_gateway_clusters";
const CONNECTIONS: &str = "cluster_gateway_upstream_connections";
/// Limit for every step.
const LIMIT: Duration = Duration::from_mins(10);
/// Limit for one rotation.
const FOLLOWED: Duration = Duration::from_mins(2);
const SETTLE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);
/// Rotations that are looked at when all were written.
const LAST: usize = 64;
const MIB: f64 = 1_048_576.0;

// === impl Registration ===

impl Registration {
    fn count(&self) -> f64 {
        number(self.sources.count)
    }

    /// Waits until all clusters are registered.
    pub fn wait_registered(&mut self) -> Result<()> {
        let wanted = self.count();
        wait::until("all to be registered", LIMIT, || {
            let now = self.controllers.metric_of(OBJECTS, "state=\"registered\"")?;
            ensure!((now - wanted).abs() < 0.5, "{now} of {wanted}");
            Ok(())
        })
    }

    /// A metric of the gateway.
    fn gateway_metric(&self, name: &str, labels: &str) -> Result<f64> {
        self.runtime.block_on(async {
            let connection = self.caller.connect().await?;
            let text = self.caller.ask(&connection, self.caller.get("/metrics")?).await?;
            Ok(kit::exposition::sum(&String::from_utf8_lossy(&text), name, labels))
        })
    }

    fn gateway_resident(&self, time: Duration) -> Result<f64> {
        self.runtime.block_on(memory::settled(&self.gateway.tree, SETTLE.min(time)))
    }

    /// The controllers' requests for Secrets and Clusters. Events of registered clusters are still
    /// written a minute later.
    fn asked(&self) -> Result<Asked> {
        let text = self.runtime.block_on(self.sources.hub_metrics())?;
        Ok(Asked::of(&text, |labels| {
            labels.contains("resource=\"secrets\"") || labels.contains("group=\"cluster.x-k8s.io\"")
        }))
    }

    /// Registers all from the beginning: nothing is registered when the controllers start.
    pub fn register(&mut self, time: Duration) -> Result<Sample> {
        self.controllers.stop()?;
        self.runtime.block_on(self.sources.unregister(NAMESPACE))?;
        self.gateway.restart()?;
        let before = self.gateway_resident(time)?;
        let begin = Instant::now();
        self.controllers.start_again()?;
        self.wait_registered()?;
        let written = begin.elapsed();
        let cpu = self.controllers.tree.usage()?.cpu;
        let wanted = self.count() + 1.0; // with the one by hand
        wait::until("the gateway to have all", LIMIT, || {
            let now = self.gateway_metric(CLUSTERS, "state=\"ready\"")?;
            ensure!(now >= wanted, "{now} of {wanted}");
            Ok(())
        })?;
        let known = begin.elapsed();
        let resident = self.gateway_resident(time)?;
        let asked = self.ask_each()?;
        let share = 100.0 * (1.0 - cpu.as_secs_f64() / written.as_secs_f64());
        Ok([
            (START_S.key, written.as_secs_f64()),
            (START_WAIT.key, share),
            (START_CPU.key, cpu.as_secs_f64() * 1e3 / self.count()),
            (HUB_S.key, self.sources.took.as_secs_f64()),
            (KNOWN_S.key, known.saturating_sub(written).as_secs_f64()),
            (ASKED_S.key, asked.as_secs_f64()),
            (GATEWAY_KIB.key, (resident - before) / 1024.0 / self.count()),
        ]
        .into())
    }

    /// Asks each cluster once; none may fail.
    fn ask_each(&self) -> Result<Duration> {
        let count = self.sources.count;
        let load = closed_loop::Load { paths: paths(count), requests: count, time: LIMIT };
        let begin = Instant::now();
        let answered = self.runtime.block_on(closed_loop::run(&self.caller, &load))?;
        ensure!((answered - self.count()).abs() < 0.5, "{answered} were answered");
        Ok(begin.elapsed())
    }

    /// Restarts the controllers with all clusters registered.
    pub fn start_again(&mut self, time: Duration) -> Result<Sample> {
        let (before, begin) = (self.asked()?, Instant::now());
        self.controllers.restart()?;
        self.wait_registered()?;
        let (took, cpu) = (begin.elapsed(), self.controllers.tree.usage()?.cpu);
        let asked = self.asked()?.since(before);
        let resident = self.runtime.block_on(memory::settled(&self.controllers.tree, SETTLE.min(time)))?;
        Ok([
            (AGAIN_S.key, took.as_secs_f64()),
            (AGAIN_CPU.key, cpu.as_secs_f64()),
            (AGAIN_REQUESTS.key, asked.requests / self.count()),
            (AGAIN_WRITES.key, asked.writes),
            (RESIDENT.key, resident / MIB),
        ]
        .into())
    }

    fn used(&self) -> Result<[Usage; 2]> {
        Ok([self.controllers.tree.usage()?, self.gateway.tree.usage()?])
    }

    /// Writes each source with unchanged content.
    pub fn touch_all(&mut self) -> Result<Sample> {
        let connections = self.gateway_metric(CONNECTIONS, "")?;
        let (writes, looks) = (self.controllers.metric(WRITES)?, self.controllers.metric(LOOKS)?);
        let used = self.used()?;
        let text = format!("at {}", self.turn);
        self.runtime.block_on(self.sources.touch(text))?;
        let wanted = looks + self.count();
        wait::until("all to be looked at", LIMIT, || {
            let now = self.controllers.metric(LOOKS)?;
            ensure!(now >= wanted, "{now} of {wanted}");
            Ok(())
        })?;
        let after = self.used()?;
        let each = |of: usize| after[of].cpu.saturating_sub(used[of].cpu).as_secs_f64() * 1e6 / self.count();
        Ok([
            (TOUCH_CPU.key, each(0)),
            (TOUCH_GATEWAY.key, each(1)),
            (TOUCH_WRITES.key, self.controllers.metric(WRITES)? - writes),
            (TOUCH_CONNECTIONS.key, (self.gateway_metric(CONNECTIONS, "")? - connections).abs()),
        ]
        .into())
    }

    /// Rotates tokens one after the other.
    pub fn rotate_each(&mut self, time: Duration) -> Result<Sample> {
        let (begin, mut taken) = (Instant::now(), Vec::new());
        while taken.is_empty() || begin.elapsed() < time {
            self.turn += 1;
            taken.push(self.runtime.block_on(self.rotate(self.turn))?);
        }
        let (p50, p99) = percentiles(taken)?;
        Ok([(P50.key, p50 / 1e3), (P99.key, p99 / 1e3)].into())
    }

    /// Time from sending the write of the source until a request was answered with the new token.
    async fn rotate(&self, turn: usize) -> Result<Duration> {
        let (hub, gateway) = (self.sources.connect().await?, self.caller.connect().await?);
        let (cluster, token) = (self.sources.with_token(turn), token(turn));
        let (path, expected) = (path(cluster), Bytes::from(format!("Bearer {token}")));
        let begin = Instant::now();
        self.sources.rotate(&hub, cluster, &token).await?;
        self.wait_token(&gateway, &path, &expected).await?;
        Ok(begin.elapsed())
    }

    async fn wait_token(&self, gateway: &SendRequest<Bytes>, path: &str, expected: &Bytes) -> Result<()> {
        let begin = Instant::now();
        while self.caller.ask(gateway, self.caller.get(path)?).await? != *expected {
            ensure!(begin.elapsed() < FOLLOWED, "the gateway does not use the new token: {path}");
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits until the `last` rotations are in use, each of another cluster.
    async fn wait_used(&self, last: usize) -> Result<()> {
        let gateway = self.caller.connect().await?;
        for turn in self.turn + 1 - last..=self.turn {
            let expected = Bytes::from(format!("Bearer {}", token(turn)));
            self.wait_token(&gateway, &path(self.sources.with_token(turn)), &expected).await?;
        }
        Ok(())
    }

    /// Rotates as many tokens as there are clusters, evenly over `time`.
    pub fn rotate_all(&mut self, time: Duration) -> Result<Sample> {
        let (writes, used) = (self.controllers.metric(WRITES)?, self.controllers.tree.usage()?);
        let (first, count) = (self.turn + 1, self.sources.count);
        self.turn += count;
        self.runtime.block_on(self.sources.rotate_all(first, count, time))?;
        let end = Instant::now();
        let backlog = self.count() - (self.controllers.metric(WRITES)? - writes);
        self.runtime.block_on(self.wait_used(LAST.min(count / 2)))?;
        let behind = end.elapsed();
        let cpu = self.controllers.tree.cpu_since(used)?;
        Ok([
            (BACKLOG.key, backlog.max(0.0)),
            (BEHIND_MS.key, behind.as_secs_f64() * 1e3),
            (ROTATION_CPU.key, cpu.as_secs_f64() * 1e3 / self.count()),
        ]
        .into())
    }
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
