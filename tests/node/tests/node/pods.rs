//! The effect of the charts' pods in kubelet and kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::StatusCode;
use hub_tests::http::Client;
use hub_tests::{promtool, wait};
use kit::exposition;
use node_tests::cluster::Cluster;
use node_tests::load::{self, Crowd};
use node_tests::states::{self, States};
use node_tests::testbed::Testbed;
use serde_json::{Value, json};

/// Paths with which programs are started in their images.
const PROGRAMS: [&str; 4] = [GATEWAY, "/tunnel-server", "/cluster-gateway-controllers", AGENT];
pub(crate) const GATEWAY: &str = "/apiserver";
pub(crate) const AGENT: &str = "/tunnel-agent";
/// The unit in which the kernel reports CPU time, regardless of its internal one (proc(5)).
const TICK_MILLIS: u64 = 10;
/// The alert on pods that are not ready.
const NOT_READY: &str = "ClusterGatewayNotReady";
/// Pods of a hub and of a member, all programs' together.
const COUNTS: [usize; 2] = [6, 2];
/// Time for surplus pods to end and for the others to become ready, on a busy machine.
const SETTLED: Duration = Duration::from_mins(3);
/// Number of watches through hub, gateway and tunnel.
const WATCHES: usize = 2000;
/// Memory that the charts give each program.
const LIMITS: [u64; 4] = [1 << 30, 2 << 30, 512 << 20, 1 << 30];
/// Where a container reads its own, by the version of control groups.
const LIMIT_FILES: [&str; 2] = ["memory.max", "memory/memory.limit_in_bytes"];
/// Which part of it a gateway holds for clients, and how it says so.
const SHARE: u64 = 4;
const HOLDS: &str = "cluster_gateway_held_bytes_limit";
/// What each program holds for them at most: fractions of its limit. The controllers have no part
/// in them.
const HELD: [u64; 4] = [150 << 20, 60 << 20, 60 << 20, 60 << 20];
/// Time for a pod to be found stuck (three probes of five seconds, ten seconds apart), killed, and
/// started.
const STARTED_AGAIN: Duration = Duration::from_secs(150);
/// Time from the kubelet's decision that a pod is stuck to its end: the charts' grace period for
/// this, and some for the kubelet. The pods' own grace period is 45 s, and 40 s for agents.
const STUCK: Duration = Duration::from_secs(25);

/// A process of a pod, seen from outside.
pub(crate) struct Inmate {
    id: u32,
    directory: PathBuf,
}

/// Both processes of a program.
fn inmates(program: &str) -> Result<Vec<Inmate>> {
    let found = living(program)?;
    ensure!(found.len() == 2, "{} processes {program}", found.len());
    Ok(found)
}

/// Every process whose first word is `program`.
pub(crate) fn living(program: &str) -> Result<Vec<Inmate>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).next() == Some(program.as_bytes()) {
            found.push(Inmate::numbered(id));
        }
    }
    Ok(found)
}

// === impl Inmate ===

impl Inmate {
    pub(crate) fn numbered(id: u32) -> Self {
        Self { id, directory: format!("/proc/{id}").into() }
    }

    /// Fields of `/proc/<id>/status` (proc(5)).
    fn status(&self) -> Result<BTreeMap<String, String>> {
        let text = fs::read_to_string(self.directory.join("status"))?;
        Ok(text.lines().filter_map(|line| line.split_once(':')).map(|(a, b)| (a.into(), b.trim().into())).collect())
    }

    /// Checks the restrictions that the kernel enforces on the process.
    fn check(&self) -> Result<()> {
        let status = self.status()?;
        for (field, value) in [
            ("Uid", "65532\t65532\t65532\t65532"),
            ("Gid", "65532\t65532\t65532\t65532"),
            ("CapEff", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"), // a filter
        ] {
            ensure!(status.get(field).is_some_and(|is| is == value), "{field}: {:?}", status.get(field));
        }
        let mounts = fs::read_to_string(self.directory.join("mountinfo"))?;
        let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).context("no root")?;
        ensure!(root.split(' ').nth(5).is_some_and(|options| options.split(',').any(|one| one == "ro")), "{root}");
        let refused = fs::write(self.directory.join("root/written"), "").err().context("its files can be written")?;
        ensure!(refused.kind() == std::io::ErrorKind::ReadOnlyFilesystem, "{refused}");
        Ok(())
    }

    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let status = std::process::Command::new("kill").args([format!("-{name}"), self.id.to_string()]).status()?;
        ensure!(status.success(), "kill {}: {status}", self.id);
        Ok(())
    }

    /// The name of its pod.
    pub(crate) fn host_name(&self) -> Result<String> {
        let variables = fs::read(self.directory.join("environ"))?;
        let mut variables = variables.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        variables.find_map(|one| one.strip_prefix("HOSTNAME=").map(str::to_owned)).context("no HOSTNAME")
    }

    /// CPU time that all its threads have used.
    pub(crate) fn cpu_millis(&self) -> Result<u64> {
        let text = fs::read_to_string(self.directory.join("stat"))?;
        // The second field, in parentheses, may contain anything but the last of these.
        let (_, fields) = text.rsplit_once(')').context("no name")?;
        let times: Vec<u64> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        ensure!(times.len() == 2, "{text}");
        Ok(times.iter().sum::<u64>() * TICK_MILLIS)
    }

    /// Bytes that the kernel lets it use.
    fn limit(&self) -> Result<u64> {
        let groups = self.directory.join("root/sys/fs/cgroup");
        let text = LIMIT_FILES.iter().find_map(|file| fs::read_to_string(groups.join(file)).ok());
        let text = text.context("no control group of memory")?;
        text.trim().parse().with_context(|| text.clone())
    }

    /// Bytes that it has resident, which its limit counts.
    fn resident(&self) -> Result<u64> {
        let text = self.status()?.remove("VmRSS").context("no VmRSS")?;
        Ok(1024 * text.trim_end_matches(" kB").trim().parse::<u64>()?)
    }
}

/// Checks that the kernel enforces the charts' security settings, and that the hub's admission
/// demands no more.
pub(crate) fn confined(testbed: &Testbed) -> Result<()> {
    for (program, limit) in PROGRAMS.into_iter().zip(LIMITS) {
        for inmate in inmates(program)? {
            inmate.check().with_context(|| program.to_owned())?;
            let held_to = inmate.limit().with_context(|| program.to_owned())?;
            ensure!(held_to == limit, "{program} may use {held_to} bytes, not {limit}");
        }
    }
    let measured = measured(testbed);
    load::clean(&[&testbed.hub])?;
    measured?;
    for (cluster, namespace) in [(&testbed.hub, "vela-system"), (&testbed.member, "default")] {
        let label = "pod-security.kubernetes.io/enforce=restricted";
        let words = ["label", "--dry-run=server", "--overwrite", "namespace", namespace, label];
        let labelled = cluster.kubectl().args(words).run()?;
        let said = format!("{}{}", labelled.stdout, labelled.stderr);
        ensure!(labelled.status == 0 && !said.contains("Warning"), "{said}");
    }
    Ok(())
}

/// The gateways know what they may use, and hold no more than their part of it.
fn measured(testbed: &Testbed) -> Result<()> {
    let token = format!("Bearer {}", load::account(&testbed.hub)?);
    let pods = testbed.hub.get("pods -n vela-system -l app.kubernetes.io/name=cluster-gateway")?;
    for pod in pods["items"].as_array().context("no list")? {
        let address = pod["status"]["podIP"].as_str().context("no address")?;
        let gateway = Client::probe(format!("{address}:9443").parse()?);
        let metrics = wait::until("metrics", SETTLED, || {
            gateway.get("/metrics", &[("authorization", &token)])?.expect(StatusCode::OK)
        })?;
        let holds: Option<u64> = exposition::value(&metrics.text(), HOLDS);
        ensure!(holds == Some(LIMITS[0] / SHARE), "{HOLDS} is {holds:?}");
    }
    Ok(())
}

/// Nobody takes two at a time.
pub(crate) fn evicted(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    for (cluster, namespace, name) in [
        (&testbed.hub, "vela-system", "cluster-gateway"),
        (&testbed.hub, "vela-system", "tunnel-server"),
        (&testbed.hub, "vela-system", "cluster-gateway-controllers"),
        (&testbed.member, "default", "tunnel-agent"),
    ] {
        let pods = cluster.get(&format!("pods -n {namespace} -l app.kubernetes.io/name={name}"))?;
        let pods: Vec<&str> = pods["items"].as_array().into_iter().flatten().filter_map(name_of).collect();
        ensure!(pods.len() == 2, "{name}: {pods:?}");
        // One pod goes; the other may not go until there are two again.
        evict(cluster, namespace, pods[0])?;
        let refused = evict(cluster, namespace, pods[1]).err().context("both went")?;
        ensure!(format!("{refused:#}").contains("disruption budget"), "{refused:#}");
    }
    settled(testbed)
}

fn name_of(object: &Value) -> Option<&str> {
    object["metadata"]["name"].as_str()
}

fn evict(cluster: &Cluster, namespace: &str, pod: &str) -> Result<()> {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace}});
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    let words = ["create", "--raw", &path, "-f", "-"];
    cluster.kubectl().args(words).stdin(eviction.to_string()).run()?.success().map(drop)
}

/// Clusters and namespaces of the pods, and the number of pods.
fn places(testbed: &Testbed) -> [(&Cluster, &'static str, usize); 2] {
    let [hub, member] = COUNTS;
    [(&testbed.hub, "vela-system", hub), (&testbed.member, "default", member)]
}

/// Waits until there are two pods of each program, all ready.
pub(crate) fn settled(testbed: &Testbed) -> Result<()> {
    for (cluster, namespace, count) in places(testbed) {
        wait::until("pods to settle", SETTLED, || {
            let pods = cluster.get(&format!("pods -n {namespace}"))?;
            let pods = pods["items"].as_array().context("no list")?;
            let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
            ensure!(pods.len() == count && pods.iter().filter(ready).count() == count, "not yet: {}", pods.len());
            Ok(())
        })?;
    }
    Ok(())
}

/// A program that hangs gets no requests, and its alert fires; one that goes on in time is not
/// started again.
pub(crate) fn probed(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let states = places(testbed).map(|(cluster, namespace, _)| States::start(testbed.directory(), cluster, namespace));
    let states = states.into_iter().collect::<Result<Vec<_>>>()?;
    let hanging = PROGRAMS.map(|program| Ok(inmates(program)?.swap_remove(0)));
    let hanging = hanging.into_iter().collect::<Result<Vec<_>>>()?;
    hanging.iter().try_for_each(|inmate| inmate.signal("STOP"))?;
    let places = places(testbed).into_iter().zip(&states);
    let told: Result<String> = places.map(|(place, states)| half_unready(place, states)).collect();
    let goes_on = hanging.iter().try_for_each(|inmate| inmate.signal("CONT"));
    let told = told?;
    goes_on.context("started again")?;
    promtool::evaluated(&told, &[NOT_READY])?;
    promtool::fires(&told, NOT_READY, PROGRAMS.len())?;
    settled(testbed)
}

/// Waits until one of both pods of each program is not ready, and kube-state-metrics tells so too.
/// What it tells then.
fn half_unready((cluster, namespace, count): (&Cluster, &str, usize), states: &States) -> Result<String> {
    wait::until("those that hang to be not ready", SETTLED, || {
        let pods = cluster.get(&format!("pods -n {namespace}"))?;
        let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
        let unready = count - pods["items"].as_array().context("no list")?.iter().filter(ready).count();
        let told = states.tell()?;
        let both = [unready, states::unready(&told)];
        ensure!(both == [count / 2; 2], "{both:?} are not ready");
        Ok(told)
    })
}

/// A program that hangs for good is killed soon, without the time that others get to end in order.
pub(crate) fn killed(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let hanging = PROGRAMS.map(|program| Ok(inmates(program)?.swap_remove(0)));
    let hanging = hanging.into_iter().collect::<Result<Vec<_>>>()?;
    hanging.iter().try_for_each(|inmate| inmate.signal("STOP"))?;
    for (cluster, namespace, count) in places(testbed) {
        let again = wait::until("those that hang to be started again", STARTED_AGAIN, || {
            let pods = cluster.get(&format!("pods -n {namespace}"))?;
            let mut again = pods["items"].as_array().context("no list")?.clone();
            again.retain(|pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1);
            ensure!(2 * again.len() == count, "{} of {count}", again.len());
            Ok(again)
        })?;
        again.iter().try_for_each(|pod| at_once(cluster, namespace, pod))?;
    }
    settled(testbed)
}

/// Checks the time between two records of the kubelet: its decision, and the program's end.
fn at_once(cluster: &Cluster, namespace: &str, pod: &Value) -> Result<()> {
    let name = name_of(pod).context("no name")?;
    let field = format!("involvedObject.name={name},reason=Killing");
    let events = cluster.get(&format!("events -n {namespace} --field-selector {field}"))?;
    let stuck = |event: &&Value| event["message"].as_str().is_some_and(|text| text.contains("failed liveness probe"));
    let decided = events["items"].as_array().into_iter().flatten().find(stuck).with_context(|| events.to_string())?;
    let ended = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(ended["exitCode"] == 137, "{ended}");
    let took = seconds(&ended["finishedAt"])? - seconds(&decided["lastTimestamp"])?;
    ensure!(took < i64::try_from(STUCK.as_secs())?, "{name} had {took} s to end");
    Ok(())
}

/// Seconds of the day, from `2026-01-31T12:34:56Z`. Around midnight the test fails.
fn seconds(time: &Value) -> Result<i64> {
    let text = time.as_str().context("no time")?;
    let (_, clock) = text.trim_end_matches('Z').split_once('T').context("no clock")?;
    clock.split(':').try_fold(0, |sum, part| Ok(60 * sum + part.parse::<i64>()?))
}

/// Many watches fit into the programs' memory.
pub(crate) fn crowded(testbed: &Testbed) -> Result<()> {
    let before = memory()?;
    let crowd = Crowd::start(&testbed.hub, ("berlin", &testbed.member), WATCHES)?;
    let after = memory()?;
    for ((program, most), held) in PROGRAMS.iter().zip(HELD).zip(&after) {
        let fits = held.iter().all(|bytes| *bytes < most);
        ensure!(fits, "{program}: {before:?}, and with {WATCHES} watches {after:?}");
    }
    crowd.check()?;
    for (cluster, namespace) in [(&testbed.hub, "vela-system"), (&testbed.member, "default")] {
        let pods = cluster.get(&format!("pods -n {namespace}"))?;
        let killed =
            |pod: &Value| pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] == "OOMKilled";
        ensure!(!pods["items"].as_array().into_iter().flatten().any(killed), "out of memory");
    }
    load::clean(&[&testbed.hub, &testbed.member])
}

/// Resident memory of both processes of each program.
fn memory() -> Result<Vec<Vec<u64>>> {
    PROGRAMS.iter().map(|program| inmates(program)?.iter().map(Inmate::resident).collect()).collect()
}
