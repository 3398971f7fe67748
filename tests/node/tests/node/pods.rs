//! What the kubelet and the kernel make of the charts' pods.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use node_tests::cluster::Cluster;
use node_tests::lab::Lab;
use node_tests::load::{self, Crowd};
use serde_json::{Value, json};

/// By which programs are started in their images.
const PROGRAMS: [&str; 3] = ["/apiserver", "/tunnel-server", "/tunnel-agent"];
/// For pods that are not wanted to end, and for others to be ready.
const SETTLED: Duration = Duration::from_secs(90);
/// Watches through hub, gateway and tunnel.
const WATCHES: usize = 2000;
/// What a gateway holds for them at most: a fraction of its limit of 1 GiB.
const GATEWAY: u64 = 150 << 20;

/// A process of a pod, seen from outside.
struct Inmate {
    id: u32,
    directory: PathBuf,
}

/// Every process whose first word is `program`.
fn inmates(program: &str) -> Result<Vec<Inmate>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).next() == Some(program.as_bytes()) {
            found.push(Inmate { id, directory: entry.path() });
        }
    }
    ensure!(found.len() == 2, "{} processes {program}", found.len());
    Ok(found)
}

// === impl Inmate ===

impl Inmate {
    /// Fields of `/proc/<id>/status` (proc(5)).
    fn status(&self) -> Result<BTreeMap<String, String>> {
        let text = fs::read_to_string(self.directory.join("status"))?;
        Ok(text.lines().filter_map(|line| line.split_once(':')).map(|(a, b)| (a.into(), b.trim().into())).collect())
    }

    /// What the kernel holds it to.
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

    fn signal(&self, name: &str) -> Result<()> {
        let status = std::process::Command::new("kill").args([format!("-{name}"), self.id.to_string()]).status()?;
        ensure!(status.success(), "kill {}: {status}", self.id);
        Ok(())
    }

    /// Bytes that it has resident, which its limit counts.
    fn resident(&self) -> Result<u64> {
        let text = self.status()?.remove("VmRSS").context("no VmRSS")?;
        Ok(1024 * text.trim_end_matches(" kB").trim().parse::<u64>()?)
    }
}

/// What the charts say of security, the kernel does, and the hub's admission demands no more.
pub(crate) fn confined(lab: &Lab) -> Result<()> {
    for program in PROGRAMS {
        for inmate in inmates(program)? {
            inmate.check().with_context(|| program.to_owned())?;
        }
    }
    for (cluster, namespace) in [(&lab.hub, "vela-system"), (&lab.member, "default")] {
        let label = "pod-security.kubernetes.io/enforce=restricted";
        let words = ["label", "--dry-run=server", "--overwrite", "namespace", namespace, label];
        let labelled = cluster.kubectl().args(words).run()?;
        let said = format!("{}{}", labelled.stdout, labelled.stderr);
        ensure!(labelled.status == 0 && !said.contains("Warning"), "{said}");
    }
    Ok(())
}

/// Nobody takes two at a time.
pub(crate) fn evicted(lab: &Lab) -> Result<()> {
    settled(lab)?;
    for (cluster, namespace, name) in [
        (&lab.hub, "vela-system", "cluster-gateway"),
        (&lab.hub, "vela-system", "tunnel-server"),
        (&lab.member, "default", "tunnel-agent"),
    ] {
        let pods = cluster.get(&format!("pods -n {namespace} -l app.kubernetes.io/name={name}"))?;
        let pods: Vec<&str> = pods["items"].as_array().into_iter().flatten().filter_map(name_of).collect();
        ensure!(pods.len() == 2, "{name}: {pods:?}");
        // One goes, the other may not until there are two again.
        evict(cluster, namespace, pods[0])?;
        let refused = evict(cluster, namespace, pods[1]).err().context("both went")?;
        ensure!(format!("{refused:#}").contains("disruption budget"), "{refused:#}");
    }
    settled(lab)
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

/// Waits until there are two pods of each program, all ready.
pub(crate) fn settled(lab: &Lab) -> Result<()> {
    for (cluster, namespace, count) in [(&lab.hub, "vela-system", 4), (&lab.member, "default", 2)] {
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

/// A program that hangs gets no requests; one that goes on in time is not started again.
pub(crate) fn probed(lab: &Lab) -> Result<()> {
    settled(lab)?;
    let hanging = PROGRAMS.map(|program| Ok(inmates(program)?.swap_remove(0)));
    let hanging = hanging.into_iter().collect::<Result<Vec<_>>>()?;
    hanging.iter().try_for_each(|inmate| inmate.signal("STOP"))?;
    let unready = |cluster: &Cluster, namespace: &str, count: usize| {
        wait::until("those that hang to be not ready", SETTLED, || {
            let pods = cluster.get(&format!("pods -n {namespace}"))?;
            let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
            let unready = count - pods["items"].as_array().context("no list")?.iter().filter(ready).count();
            ensure!(2 * unready == count, "{unready} are not ready");
            Ok(())
        })
    };
    let hang = unready(&lab.hub, "vela-system", 4).and_then(|()| unready(&lab.member, "default", 2));
    let goes_on = hanging.iter().try_for_each(|inmate| inmate.signal("CONT"));
    hang?;
    goes_on.context("started again")?;
    settled(lab)
}

/// Many watches fit into a gateway's memory.
pub(crate) fn crowded(lab: &Lab) -> Result<()> {
    let before = memory()?;
    let crowd = Crowd::start(&lab.hub, ("berlin", &lab.member), WATCHES)?;
    let after = memory()?;
    ensure!(after.iter().all(|bytes| *bytes < GATEWAY), "{before:?}, and with {WATCHES} watches {after:?}");
    crowd.check()?;
    let pods = lab.hub.get("pods -n vela-system -l app.kubernetes.io/name=cluster-gateway")?;
    let killed =
        |pod: &Value| pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] == "OOMKilled";
    ensure!(!pods["items"].as_array().into_iter().flatten().any(killed), "out of memory");
    load::clean(&[&lab.hub, &lab.member])
}

fn memory() -> Result<Vec<u64>> {
    inmates("/apiserver")?.iter().map(Inmate::resident).collect()
}
