//! A leader dies in the middle of its works, and another finishes them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{GROUP, Place, WORKS, condition, config_map, hash};
use crate::fixture::{SOON, print};

const CLUSTER: &str = "works-killed";
const WORKS_HERE: usize = 100;
/// At least this many objects exist when the leader dies.
const BEGUN: usize = 20;
/// A leader's limit of concurrent requests to one member (`--requests-per-cluster`).
const AT_ONCE: usize = 4;
/// Time from a leader's death: 15 s from the last renewal of its Lease, and the requests to take it
/// over.
const TAKE_OVER: Duration = Duration::from_secs(16);
const AFTER_A_STOP: Duration = Duration::from_secs(5);

pub fn killed(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, CLUSTER)?;
    // Delivery starts only once all works exist.
    place.deliver(None)?;
    place.running.stop()?;
    let mut first = place.running.process(testbed, "works-first")?;
    first.wait_to_say("leading")?;
    place.running.restart_stopped()?;
    works(&place)?;
    place.deliver(Some("push"))?;
    let applied = wait::until("some to be applied", SOON, || {
        let there = objects(&place)?;
        ensure!(there.len() >= BEGUN, "{} so far", there.len());
        Ok(there)
    })?;
    // A standby sends no requests to members.
    let asked = place.running.metric("cluster_gateway_delivery_member_requests_total", CLUSTER)?;
    ensure!(asked < 0.5, "one that waits made {asked} requests");
    // The leader connects only to the hub, whose gateway reaches the member.
    let (connected, hub) = (connections(&first.process)?, place.testbed.hub.server.url());
    let hub: SocketAddr = hub.trim_start_matches("https://").parse()?;
    first.process.signal("KILL")?;
    let died = Instant::now();
    ensure!(connected == BTreeSet::from([hub]), "connections to {connected:?}, the hub is {hub}");
    let (begun, told) = (objects(&place)?, statuses(&place)?);
    ensure!(applied.len() <= begun.len() && begun.len() < WORKS_HERE, "{} were applied in time", begun.len());

    let lead = || Ok(place.running.metric("cluster_gateway_controllers_leader", "")? >= 1.0);
    wait::until_true("the other to lead", TAKE_OVER, lead)?;
    let took = died.elapsed();
    let waiting = || place.running.metric("cluster_gateway_delivery_queue_depth", "");
    wait::until("works to wait for their turn", SOON, || {
        let waiting = waiting()?;
        ensure!(waiting >= 1.0, "{waiting} wait");
        Ok(())
    })?;
    wait::until("all to be applied", 2 * SOON, || {
        let statuses = statuses(&place)?;
        ensure!(statuses.values().filter(|(_, applied)| *applied).count() == WORKS_HERE, "{statuses:?}");
        Ok(())
    })?;
    let all = died.elapsed();
    wait::until("nobody to wait", SOON, || {
        let waiting = waiting()?;
        ensure!(waiting < 0.5, "{waiting} wait");
        Ok(())
    })?;
    print(&format!("another led {took:.1?} after the kill, and the {WORKS_HERE} works were applied after {all:.1?}"));
    once_each(&place)?;
    let after = objects(&place)?;
    ensure!(after.len() == WORKS_HERE, "{} objects", after.len());
    ensure!(begun.iter().all(|(name, version)| after.get(name) == Some(version)), "{begun:?} became {after:?}");
    let now = statuses(&place)?;
    let rewritten: Vec<_> = told.iter().filter(|(name, told)| told.1 && now.get(*name) != Some(*told)).collect();
    ensure!(rewritten.is_empty(), "{rewritten:?} were told already");
    place.delete(&format!("{WORKS} --all -n {CLUSTER} --wait=false"))?;
    wait::until_true("the end of the works", 2 * SOON, || Ok(statuses(&place)?.is_empty()))?;
    place.end(&[])
}

/// A leader that stops gives its Lease up: another applies the next work a moment later.
pub fn stopped(testbed: &Testbed) -> Result<()> {
    let cluster = "works-stopped";
    let mut place = Place::start(testbed, cluster)?;
    let map = |name: &str| [config_map(cluster, name, &json!({"a": "b"}))];
    place.work("before", &map("before"), &json!({}))?;
    place.wait_applied("before")?;
    let version = |object: Value| object["metadata"]["resourceVersion"].clone();
    let before = [place.read("before")?, place.object("configmap", "before")?].map(version);
    let second = place.running.replica()?;
    wait::until("another that waits", SOON, || {
        ensure!(second.get("/readyz")?.contains("ok"), "{}", second.get("/readyz?verbose")?);
        Ok(())
    })?;
    ensure!(second.metric("cluster_gateway_controllers_leader", "")? < 0.5, "two lead");
    place.running.stop()?;
    let stopped = Instant::now();
    place.work("after", &map("after"), &json!({}))?;
    wait::until_true("the next work", SOON, || Ok(!place.object("configmap", "after")?.is_null()))?;
    let took = stopped.elapsed();
    print(&format!("the next work was applied {took:.1?} after a clean stop"));
    ensure!(took < AFTER_A_STOP, "it took {took:?}");
    place.wait_applied("after")?;
    let after = [place.read("before")?, place.object("configmap", "before")?].map(version);
    ensure!(after == before, "it was written again");
    place.running = second;
    place.end(&["before", "after"])
}

/// Checks that each object, and the `AppliedManifestWork` that lists it, was created once and not
/// written again on the member.
fn once_each(place: &Place<'_>) -> Result<()> {
    let objects = format!("/api/v1/namespaces/{CLUSTER}/configmaps");
    let lists = format!("/apis/{GROUP}/v1/appliedmanifestworks");
    let mut writes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unanswered: BTreeSet<String> = BTreeSet::new();
    for entry in place.testbed.member.seen(&objects)?.into_iter().chain(place.testbed.member.seen(&lists)?) {
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (verb, name) = (text("/verb"), text("/objectRef/name"));
        let is_ours = name.starts_with("killed-") || name.starts_with(&format!("{}-killed-", hash()));
        if !is_ours || ["get", "list", "watch"].contains(&verb.as_str()) {
            continue;
        }
        let object = format!("{}/{name}", text("/objectRef/resource"));
        // A request that was in flight when the first leader died may have been stored without an
        // answer. The other leader may repeat it, which the member refuses.
        if entry["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300) {
            writes.entry(object).or_default().push(format!("{verb} {}", text("/objectRef/subresource")));
        } else {
            unanswered.insert(object);
        }
    }
    let mut cut = 0;
    for number in 0..WORKS_HERE {
        for object in
            [format!("configmaps/killed-{number}"), format!("appliedmanifestworks/{}-killed-{number}", hash())]
        {
            let Some(writes) = writes.get(&object) else {
                ensure!(unanswered.contains(&object), "{object} was forgotten");
                cut += 1;
                continue;
            };
            // An `AppliedManifestWork` is created, and then its status lists the object.
            let most = if object.starts_with("configmaps") { 1 } else { 2 };
            ensure!(writes.len() <= most, "{object}: {writes:?}");
        }
    }
    ensure!(cut <= AT_ONCE, "{cut} writes were never answered");
    Ok(())
}

/// Creates all works at once.
fn works(place: &Place<'_>) -> Result<()> {
    let work = |number: usize| {
        let name = format!("killed-{number}");
        let spec = json!({"workload": {"manifests": [config_map(CLUSTER, &name, &json!({"a": "b"}))]}});
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": CLUSTER}, "spec": spec})
    };
    place.testbed.hub.server.create(&(0..WORKS_HERE).map(work).collect::<Vec<_>>())
}

/// The version of each object that exists.
fn objects(place: &Place<'_>) -> Result<BTreeMap<String, String>> {
    let list = place.member().read(&format!("configmaps -n {CLUSTER}"))?;
    let all = list["items"].as_array().cloned().unwrap_or_default().into_iter().map(|one| {
        let text = |field: &str| one["metadata"][field].as_str().unwrap_or_default().to_owned();
        (text("name"), text("resourceVersion"))
    });
    Ok(all.filter(|(name, _)| name.starts_with("killed-")).collect())
}

/// The version of each work, and whether its status says applied and available.
fn statuses(place: &Place<'_>) -> Result<BTreeMap<String, (String, bool)>> {
    let list = place.testbed.hub.server.read(&format!("{WORKS} -n {CLUSTER}"))?;
    let all = list["items"].as_array().cloned().unwrap_or_default().into_iter().map(|one| {
        let text = |field: &str| one["metadata"][field].as_str().unwrap_or_default().to_owned();
        let is = |kind: &str| condition(&one["status"], kind)["status"] == "True";
        (text("name"), (text("resourceVersion"), is("Applied") && is("Available")))
    });
    Ok(all.collect())
}

/// The remote addresses of the program's TCP connections.
fn connections(process: &Process) -> Result<BTreeSet<SocketAddr>> {
    let id = process.program_id()?;
    let output = Command::new("ls").arg("-l").arg(format!("/proc/{id}/fd")).output()?;
    let files = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        // A system without IPv6 has no such table.
        let Ok(table) = std::fs::read_to_string(format!("/proc/{id}/net/{table}")) else { continue };
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (remote, state, inode) = (fields[2], fields[3], fields[9]);
            // Only established connections: listening sockets have no remote address.
            if state == "01" && files.contains(&format!("socket:[{inode}]")) {
                let (address, port) = remote.split_once(':').context("an address and a port")?;
                found.insert(SocketAddr::from((ip(address)?, u16::from_str_radix(port, 16)?)));
            }
        }
    }
    Ok(found)
}

/// An address as the kernel writes it: words of 32 bits, each with its lowest byte first.
fn ip(text: &str) -> Result<IpAddr> {
    let word = |at: usize| -> Result<[u8; 4]> {
        Ok(u32::from_str_radix(text.get(8 * at..8 * at + 8).context("a word")?, 16)?.to_le_bytes())
    };
    if text.len() == 8 {
        return Ok(word(0)?.into());
    }
    let words = (0..4).map(word).collect::<Result<Vec<_>>>()?.concat();
    Ok(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok().context("four words")?).to_canonical())
}
