//! A thousand clusters on a real hub with a gateway, with scripted members behind them.

#[path = "scale/browsed.rs"]
mod browsed;
#[allow(dead_code, reason = "the tests on a hub use the rest")]
#[path = "hub/chromium.rs"]
mod chromium;
#[allow(dead_code, reason = "the tests on a hub use the rest")]
#[path = "hub/dashboard/http.rs"]
mod http;
#[path = "scale/plain.rs"]
mod plain;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::{Etcd, Launcher};
use hub_tests::hub::{Hub, MemberSecret};
use hub_tests::kubectl::Kubectl;
use hub_tests::product::Product;
use hub_tests::scratch::Scratch;
use hub_tests::tools::{Tool, Tools};
use hub_tests::wait;
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use kit::others::Moment;
use kit::wait::Gate;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::{Instant, interval, sleep, timeout};

use self::http::Address;

const CLUSTERS: usize = 1000;
/// Each stands for many clusters.
const MEMBERS: usize = 8;
/// Secrets that kubectl creates at once.
const BATCH: usize = 250;
const LIMIT: Duration = Duration::from_mins(1);
/// The promised time. On two free cores, which hub, gateway, members and program share, it takes 2
/// to 4 s.
const PROMISED: Duration = Duration::from_secs(5);
/// What [`PROMISED`] is extended to at most where others use the machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Most time of a run, as a multiple of that of a client that only sends the same requests
/// ([`plain`]), if that is longer than the limit above.
const MOST_TIMES: f64 = 2.5;
/// Most CPU time of both runs, as a multiple of [`plain`]'s. Both include what hub, gateway and
/// members take, and the machine's speed moves both. The first run's connections to members, the
/// lists, and the tables are what it is above 1. Requests are counted, so that a program that asks
/// twice does not pass as one that is cheap.
const MOST_CPU_TIMES: f64 = 2.5;
/// As many clusters are asked at a time at least once, and no more than that.
const AT_ONCE: RangeInclusive<usize> = 8..=16;
/// How long members take to answer: asked one after the other, they would not answer in time.
const AWAY: Duration = Duration::from_millis(20);
/// Interval between two reads of the program's peak memory, which only grows.
const LOOK: Duration = Duration::from_millis(5);
/// The path on a member that `get pods` asks for.
const PODS: &str = "/api/v1/namespaces/default/pods";
/// Most memory of the program, in KiB.
const MEMORY: u64 = 200 << 10;
/// Time until a page with all clusters begins to arrive. On two free cores, it takes some
/// milliseconds.
const FIRST_BYTE: Duration = Duration::from_secs(2);
/// Largest size of that page, in bytes.
const PAGE: usize = 1 << 20;
/// Largest size of an event in which only latencies of some clusters changed, in bytes.
const EVENT: usize = 64 << 10;
/// Events that are measured.
const EVENTS: usize = 20;

/// A hub with a gateway. Not a testbed: no real member takes part, whose control plane would take
/// as much of the machine as the hub's.
struct OwnHub {
    /// First, so that it is dropped first.
    _gateway: Product,
    hub: Hub,
    _etcd: Etcd,
    launcher: Launcher,
    scratch: Scratch,
}

#[test]
fn pods_of_a_thousand_clusters_are_one_table_soon() -> Result<()> {
    let own = OwnHub::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let load = Arc::<Load>::default();
    let members: Vec<_> = (0..MEMBERS).map(|_| runtime.block_on(member(&load))).collect();
    register(&own, &members)?;
    let kubeconfig = own.hub.server.kubectl().kubeconfig;
    let line = ["get", "pods", "--all"];
    let before = Moment::now()?;
    // The first run makes a connection to each cluster.
    let cold = runtime.block_on(run(&kubeconfig, &line))?;
    let warm = runtime.block_on(run(&kubeconfig, &line))?;
    let (others, spent, within) = (before.others()?, before.spent()?, before.extended(PROMISED)?.min(PATIENCE));
    let (asked, at_once) = (load.asked.load(Ordering::Relaxed), load.most.load(Ordering::Relaxed));
    ensure!(asked == 2 * CLUSTERS, "two runs asked {CLUSTERS} clusters for their pods {asked} times");
    for run in [&cold, &warm] {
        ensure!(run.memory <= MEMORY, "{} KiB", run.memory);
        let rows: Vec<&str> = run.stdout.lines().skip(1).collect();
        ensure!(rows.len() == 2 * CLUSTERS && rows.is_sorted(), "{} rows, sorted: {}", rows.len(), rows.is_sorted());
        let of: BTreeSet<_> = rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
        ensure!(of.len() == CLUSTERS, "rows of {} clusters", of.len());
    }
    let plain = plain::measured(&own)?;
    let page = dashboard(&own)?;
    let told = format!(
        "cold {:?}, warm {:?}, {spent:?} of CPU time, {} KiB, {at_once} at a time, {:.0} % of the machine for others; \
         a plain client's requests {:?} and {:?} of CPU time for two rounds, a ratio of {:.2}; {page}",
        cold.took,
        warm.took,
        cold.memory.max(warm.memory),
        100.0 * others,
        plain.took,
        plain.spent,
        spent.div_duration_f64(plain.spent)
    );
    std::fs::write(own.scratch.path().parent().context("a directory")?.join("cli-scale.txt"), &told)?;
    let within = within.max(plain.took.mul_f64(MOST_TIMES));
    ensure!(cold.took <= within && warm.took <= within, "{told}");
    ensure!(spent <= plain.spent.mul_f64(MOST_CPU_TIMES) && AT_ONCE.contains(&at_once), "{told}");
    Ok(())
}

/// Measures the page of all clusters. Fails if it takes too much.
fn dashboard(own: &OwnHub) -> Result<String> {
    let program = Kubectl {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_kubectl-clusters")),
        kubeconfig: own.hub.server.kubectl().kubeconfig,
        cache: own.launcher.file("kubectl-cache"),
    };
    let mut running = program.args(["dashboard", "--no-open", "--interval", "1s"]).start()?;
    let address = Address::parse(&running.next_line(LIMIT)?)?;
    // All have answered once: from here on only latencies change.
    let settled = wait::until("all to be ready", LIMIT, || {
        let page = address.get("", &[])?;
        let ready = page.body.matches("<span data-f=\"status\">Ready<").count();
        ensure!(ready >= CLUSTERS, "{ready} are ready");
        Ok(page)
    })?;
    let version =
        settled.body.split("events?v=").nth(1).and_then(|rest| rest.split('"').next()).context("a version")?;
    let mut events = address.events(&format!("events?v={version}"))?;
    let (mut bytes, mut largest, mut clusters) = (0, 0, 0);
    for _ in 0..EVENTS {
        let before = events.read;
        let event = events.next()?;
        let size = events.read - before;
        (bytes, largest) = (bytes + size, largest.max(size));
        clusters += event["clusters"].as_object().map_or(0, serde_json::Map::len);
    }
    let before = Moment::now()?;
    let page = address.get("", &[])?;
    let within = before.extended(FIRST_BYTE)?;
    let told = format!(
        "page: first byte {:?}, {} bytes; {EVENTS} events: {bytes} bytes for {clusters} clusters, the largest {largest}",
        page.first_byte,
        page.body.len()
    );
    ensure!(page.first_byte <= within && page.body.len() <= PAGE && largest <= EVENT, "{told}");
    let browsed = browsed::times(own, &address.url())?;
    Ok(browsed.map_or(told.clone(), |times| format!("{told}; {times}")))
}

/// Requests to members.
#[derive(Default)]
struct Load {
    /// Those for pods, so far.
    asked: AtomicUsize,
    /// Those that are being answered, and the most of them at a time.
    now: AtomicUsize,
    most: AtomicUsize,
    /// Opens when the least of [`AT_ONCE`] are being answered.
    together: Gate,
}

/// The outcome of a run of the program.
struct Run {
    stdout: String,
    took: Duration,
    /// Most memory that it used, in KiB.
    memory: u64,
}

async fn run(kubeconfig: &Path, line: &[&str]) -> Result<Run> {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-clusters"))
        .args(line)
        .env("KUBECONFIG", kubeconfig)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut pipe = child.stdout.take().context("a pipe")?;
    let status = format!("/proc/{}/status", child.id().context("a process")?);
    let mut stdout = String::new();
    let (mut memory, mut looks) = (0, interval(LOOK));
    let code = {
        let ended = async { tokio::join!(pipe.read_to_string(&mut stdout), child.wait()) };
        let mut ended = pin!(timeout(LIMIT, ended));
        loop {
            tokio::select! {
                ended = &mut ended => {
                    let (read, code) = ended.context("it does not end")?;
                    read?;
                    break code?;
                }
                _ = looks.tick() => memory = memory.max(peak(&status)),
            }
        }
    };
    ensure!(code.success() && memory > 0, "{code}");
    Ok(Run { stdout, took: start.elapsed(), memory })
}

/// `VmHWM` of a process, in KiB; 0 when it is gone.
fn peak(status: &str) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

async fn member(load: &Arc<Load>) -> FakeMember {
    let member = FakeMember::start(MemberOptions::default()).await;
    let load = Arc::clone(load);
    member.on_any(move |request: &Recorded| {
        let far = Gate::default();
        let answer = Reply::json(200, &answer(request.path())).after(&far);
        let load = Arc::clone(&load);
        let is_for_pods = request.path().ends_with(PODS);
        load.asked.fetch_add(usize::from(is_for_pods), Ordering::Relaxed);
        let now = load.now.fetch_add(1, Ordering::Relaxed) + 1;
        load.most.fetch_max(now, Ordering::Relaxed);
        if now >= *AT_ONCE.start() {
            load.together.open();
        }
        tokio::spawn(async move {
            // The first wait for each other: on a slow machine they come further apart than `AWAY`.
            if is_for_pods {
                let _ = timeout(PATIENCE, load.together.passed()).await;
            }
            sleep(AWAY).await;
            load.now.fetch_sub(1, Ordering::Relaxed);
            far.open();
        });
        answer
    });
    member
}

fn answer(path: &str) -> Value {
    let pods =
        json!({"resource": "pods", "scope": "Namespaced", "verbs": ["get", "list"], "responseKind": {"kind": "Pod"}});
    let group = json!({"metadata": {}, "versions": [{"version": "v1", "resources": [pods]}]});
    let row = |name: &str| json!({"cells": [name, "1/1", "Running", 0, "5d", "10.0.0.1", "node"]});
    let column = |name: &str, priority: i32| json!({"name": name, "type": "string", "priority": priority});
    match path {
        "/version" => json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4"}),
        "/api" => json!({"kind": "APIGroupDiscoveryList", "items": [group]}),
        "/apis" => json!({"kind": "APIGroupDiscoveryList", "items": []}),
        _ => json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {},
            "columnDefinitions": [column("Name", 0), column("Ready", 0), column("Status", 0), column("Restarts", 0), column("Age", 0), column("IP", 1), column("Node", 1)],
            "rows": [row("web-1"), row("web-0")],
        }),
    }
}

fn register(own: &OwnHub, members: &[FakeMember]) -> Result<()> {
    let numbers: Vec<usize> = (0..CLUSTERS).collect();
    for batch in numbers.chunks(BATCH) {
        let documents = batch.iter().map(|number| {
            let member = &members[number % MEMBERS];
            let secret =
                MemberSecret::with_token(&own.hub.server, "token").at(&member.url()).trusting(member.authority());
            let mut document = secret.document(&format!("c-{number:04}"));
            document["metadata"]["labels"]["scale"] = json!("yes");
            document
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents.collect::<Vec<_>>()});
        own.hub.server.kubectl().args(["create", "-f", "-"]).stdin(list.to_string()).run()?.success()?;
    }
    wait::until_true("the clusters", LIMIT, || {
        Ok(own.hub.server.names("clustergateways -l scale=yes")?.len() == CLUSTERS)
    })
}

// === impl OwnHub ===

impl OwnHub {
    fn start() -> Result<Self> {
        let scratch = Scratch::create()?;
        let tools = Tools::only(&[Tool::Etcd, Tool::ApiServer, Tool::ControllerManager, Tool::Kubectl])?;
        let launcher = Launcher { tools, directory: scratch.path().to_path_buf() };
        let etcd = Etcd::start(&launcher)?;
        let mut hub = Hub::start(&launcher, &etcd)?;
        hub.wait_ready()?;
        let audited = format!("--audit-log-path={}", launcher.file("gateway-audit.log").display());
        let gateway = Product::start(&launcher, &hub, &[audited])?;
        Ok(Self { _gateway: gateway, hub, _etcd: etcd, launcher, scratch })
    }

    /// A directory for a program's files.
    fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.launcher.file(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }
}
