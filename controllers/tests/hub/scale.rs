//! Many clusters at once, on a hub that nothing else uses: how soon they are registered, and that
//! nothing is written twice. `TEST_CLUSTERS=10000` with a release build measures what is promised;
//! the figures go to `target/hub-tests/controllers-scale.txt`.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hub_tests::control_plane::ApiServer;
use hub_tests::testbed::Testbed;
use hub_tests::{http, size, wait};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::fixture::{Fixture, namespace, test};

/// The number in the gate.
const CLUSTERS: usize = 500;
/// As many concurrent writes as a controller makes.
const AT_ONCE: usize = 16;
const LIMIT: Duration = Duration::from_mins(3);
/// The limit of the program's peak memory, in KiB.
const MEMORY: u64 = 120 << 10;
/// Rotations of one cluster that are timed.
const ROTATIONS: usize = 50;
const SOURCES: &str = "scale-fleet";
const WRITTEN: &str = "scale-clusters";

/// The program as a process.
struct Program {
    child: Child,
    port: u16,
}

/// A step's duration, CPU time, and number of writes.
#[derive(Debug)]
struct Step {
    #[allow(dead_code, reason = "told")]
    took: Duration,
    #[allow(dead_code, reason = "told")]
    cpu: Duration,
    writes: u64,
}

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "scale: many clusters are registered once, and stay when the hub goes away", registered_once)]
}

fn registered_once(testbed: &Testbed) -> Result<()> {
    let clusters = size::of("TEST_CLUSTERS", CLUSTERS)?;
    // It is stopped for a while, which the testbed's hub may not be.
    let mut hub = testbed.start_api_server("scale-hub")?;
    hub.wait_ready()?;
    hub.apply(&[SOURCES, WRITTEN].map(namespace))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let kubeconfig = hub.kubectl().kubeconfig;
    let client = runtime.block_on(hub::client::client(Some(&kubeconfig), "scale"))?;
    let sources = Api::<Secret>::namespaced(client.clone(), SOURCES);
    let started = Instant::now();
    runtime.block_on(create(&sources, clusters))?;
    let hubs_own = started.elapsed();

    let program = Program::start(&kubeconfig)?;
    let first = program.until_registered(clusters, Duration::ZERO)?;
    ensure!(first.writes == u64::try_from(clusters)?, "{first:?}");
    let rotations = runtime.block_on(rotate(&sources, &Api::namespaced(client, WRITTEN)))?;
    let memory = program.memory()?;
    drop(program);

    let program = Program::start(&kubeconfig)?;
    let again = program.until_registered(clusters, Duration::ZERO)?;
    ensure!(again.writes == 0, "a restart writes: {again:?}");
    let before = program.cpu()?;
    runtime.block_on(touch(&sources, clusters))?;
    // One more change follows all of those.
    runtime.block_on(change(&sources, 0, "the-last"))?;
    wait::until_true("the last change to be written", LIMIT, || Ok(program.metric("secret_writes_total", "")? >= 1))?;
    let touched = program.cpu()?.saturating_sub(before);
    ensure!(program.metric("secret_writes_total", "")? == 1, "what was only touched is written");
    let told = format!(
        "{clusters} clusters: the hub alone {hubs_own:?}, registered {first:?}, restart {again:?}, rewrite of all: \
         {:?} a Secret, rotations {rotations}, {memory} KiB",
        touched / u32::try_from(clusters)?
    );
    hub_away(&mut hub, &program, &runtime, &sources, clusters)?;
    let kept = testbed.launcher().directory.parent().context("a directory")?;
    std::fs::write(kept.join("controllers-scale.txt"), &told)?;
    ensure!(memory <= MEMORY, "{told}");
    Ok(())
}

/// The hub goes away and comes back while one program runs and another starts: no cluster is
/// unregistered, nothing is written, and afterwards a change and a deletion take effect.
fn hub_away(
    hub: &mut ApiServer,
    program: &Program,
    runtime: &Runtime,
    sources: &Api<Secret>,
    clusters: usize,
) -> Result<()> {
    ensure!(hub_names(hub)?.len() == clusters);
    let writes = program.metric("secret_writes_total", "")?;
    hub.stop()?;
    wait::until_true("that the source cannot be read", LIMIT, || Ok(program.metric("source_available", "")? == 0))?;
    // Another program starts while the hub is down.
    let other = Program::start(&hub.kubectl().kubeconfig)?;
    hub.start_again()?;
    hub.wait_ready()?;
    for program in [program, &other] {
        wait::until_true("that the source can be read", LIMIT, || Ok(program.metric("source_available", "")? == 1))?;
        program.until_registered(clusters, Duration::ZERO)?;
    }
    ensure!(program.metric("secret_writes_total", "")? == writes, "the hub's return was a write");
    ensure!(other.metric("secret_writes_total", "")? == 0, "a start without a hub was a write");
    ensure!(hub_names(hub)?.len() == clusters, "a hub that was away unregistered clusters");
    drop(other);
    runtime.block_on(change(sources, 1, "after-the-return"))?;
    wait::until_true("the change", LIMIT, || Ok(program.metric("secret_writes_total", "")? == writes + 1))?;
    runtime.block_on(sources.delete("c2", &DeleteParams::default()))?;
    wait::until_true("the end", LIMIT, || Ok(hub_names(hub)?.len() == clusters - 1))
}

/// The names of the clusters' Secrets.
fn hub_names(hub: &ApiServer) -> Result<Vec<String>> {
    hub.names(&format!("secrets -n {WRITTEN} -l cluster.core.oam.dev/source"))
}

fn source(number: usize, token: &str) -> Value {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": format!("https://10.{}.{}.1:6443", number / 250, number % 250)}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("c{number}"), "labels": {"cluster.core.oam.dev/kubeconfig": "true"}},
        "stringData": {"kubeconfig": kubeconfig.to_string()},
    })
}

async fn create(sources: &Api<Secret>, clusters: usize) -> Result<()> {
    let made = stream::iter(0..clusters).map(|number| async move {
        let secret = serde_json::from_value(source(number, &format!("token-{number}")))?;
        sources.create(&PostParams::default(), &secret).await?;
        anyhow::Ok(())
    });
    made.buffer_unordered(AT_ONCE).try_collect().await
}

/// Writes all sources without changing their content.
async fn touch(sources: &Api<Secret>, clusters: usize) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"touched": "yes"}}});
    let patch = &patch;
    let made = stream::iter(0..clusters).map(|number| async move {
        sources.patch(&format!("c{number}"), &PatchParams::default(), &Patch::Merge(patch)).await?;
        anyhow::Ok(())
    });
    made.buffer_unordered(AT_ONCE).try_collect().await
}

async fn change(sources: &Api<Secret>, number: usize, token: &str) -> Result<()> {
    let patch = source(number, token);
    sources.patch(&format!("c{number}"), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// From the write of a source to that of its cluster: the median and the longest.
async fn rotate(sources: &Api<Secret>, written: &Api<Secret>) -> Result<String> {
    let mut took = Vec::new();
    for number in 0..ROTATIONS {
        let token = format!("rotated-{number}");
        let started = Instant::now();
        change(sources, number, &token).await?;
        loop {
            let secret = written.get(&format!("c{number}")).await?;
            let now = secret.data.and_then(|mut data| data.remove("token"));
            if now.is_some_and(|now| now.0 == token.as_bytes()) {
                break;
            }
            ensure!(started.elapsed() < LIMIT, "cluster c{number} keeps its old token");
        }
        took.push(started.elapsed());
    }
    took.sort_unstable();
    Ok(format!("{:?} (longest {:?})", took[took.len() / 2], took[took.len() - 1]))
}

// === impl Program ===

impl Program {
    fn start(kubeconfig: &Path) -> Result<Self> {
        let port = hub_tests::ports::free()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_cluster-gateway-controllers"));
        command.args([
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--secret-namespace={WRITTEN}"),
            format!("--watch-namespaces={SOURCES}"),
            format!("--admin-listen=127.0.0.1:{port}"),
            "--enable=kubeconfig".to_owned(),
            "--leader-elect=false".to_owned(),
            "--log-level=warn".to_owned(),
        ]);
        let child = command.stdin(Stdio::null()).spawn()?;
        Ok(Self { child, port })
    }

    fn until_registered(&self, clusters: usize, already: Duration) -> Result<Step> {
        let started = Instant::now();
        let clusters = u64::try_from(clusters)?;
        wait::until_true("all to be registered", LIMIT, || {
            Ok(self.metric("source_objects", "source=\"kubeconfig\",state=\"registered\"").unwrap_or_default()
                == clusters)
        })?;
        let took = started.elapsed();
        Ok(Step { took, cpu: self.cpu()?.saturating_sub(already), writes: self.metric("secret_writes_total", "")? })
    }

    /// The sum of the series of one of our metrics with these labels.
    fn metric(&self, name: &str, labels: &str) -> Result<u64> {
        let answer = http::plain((Ipv4Addr::LOCALHOST, self.port).into(), "/metrics")?;
        Ok(kit::exposition::sum(&answer, &format!("cluster_gateway_controllers_{name}"), labels))
    }

    /// Its CPU time in user and kernel mode (`proc_pid_stat(5)`, in hundredths of a second).
    fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").context("a stat line")?;
        let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(10 * ticks))
    }

    /// Its peak memory, in KiB.
    fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a peak")?;
        Ok(line.trim_end_matches("kB").trim().parse()?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It fails for a program that has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
