//! Content of a sample cluster at a moment: the recorded objects, and a small report that comes,
//! runs, ends and goes, for ever.
//!
//! The report is a function of the number of seconds that passed, and so is the resource version. A
//! watch can therefore start at any version without a stored history.

use std::collections::BTreeMap;

use kit::member::Recorded;
use parking_lot::Mutex;
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use super::documents::{Resource, moment, parsed, shift};

/// Seconds between two steps of the report.
const STEP: u64 = 2;
/// Steps from one report to the next: it comes, runs, ends and goes.
const LIFE: u64 = 4;
/// The resource version before the first step: one that looks as if the cluster had lived a while.
const FIRST_VERSION: u64 = 58_200;
/// Versions from which a watch may start: as many as an hour makes.
const REMEMBERED: u64 = 1_800;
/// Pods that may be applied.
const MOST_PLACED: usize = 16;
/// Lines of a log before the first second that passes: those that a kubelet would still have after
/// rotating its files.
const OLD_LINES: u64 = 500;

/// A sample cluster.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Its recorded content.
    pub(super) recording: &'static str,
}

/// The three-node cluster of the demo.
pub static BERLIN: Profile = Profile { name: "berlin", recording: include_str!("documents/berlin.json") };
/// The two-node cluster of the demo.
pub static OSAKA: Profile = Profile { name: "osaka", recording: include_str!("documents/osaka.json") };
/// The single-node cluster that joins while the demo runs.
pub static LIMA: Profile = Profile { name: "lima", recording: include_str!("documents/lima.json") };

/// A cluster whose time passes when it is told to. Rows are those of a Table: `cells`, and the
/// whole `object`.
#[derive(Debug)]
pub(super) struct Cluster {
    recording: Value,
    started: OffsetDateTime,
    /// Pods that were applied, with the requests that said so: their bodies are read by the end.
    placed: Mutex<BTreeMap<String, (OffsetDateTime, Recorded)>>,
}

// === impl Cluster ===

impl Cluster {
    /// The cluster as it is at `now`.
    pub(super) fn new(profile: &Profile, now: OffsetDateTime) -> Self {
        let started = now.replace_nanosecond(0).unwrap_or(now);
        let mut recording = parsed(profile.recording);
        let recorded = moment(&recording["recorded"]).expect("a recording says when it was made");
        shift(&mut recording, started - recorded);
        for resource in Resource::all() {
            let rows = recording.get_mut(resource.plural).and_then(Value::as_array_mut);
            rows.into_iter().flatten().for_each(|row| stamp(row, FIRST_VERSION));
        }
        Self { recording, started, placed: Mutex::default() }
    }

    /// `gitVersion` of its API server.
    pub(super) fn version(&self) -> &str {
        self.recording["version"].as_str().unwrap_or_default()
    }

    /// The resource version after so many seconds.
    pub(super) fn resource_version(seconds: u64) -> u64 {
        FIRST_VERSION + seconds / STEP
    }

    /// Whether a watch that starts at `version` after so many seconds would miss nothing.
    pub(super) fn remembers(version: u64, seconds: u64) -> bool {
        let now = Self::resource_version(seconds);
        (FIRST_VERSION..=now).contains(&version) && now - version <= REMEMBERED
    }

    /// The rows of a resource at `version`, ordered by namespace and name.
    pub(super) fn rows(&self, resource: Resource, version: u64) -> Vec<Value> {
        let recorded = self.recording[resource.plural].as_array().into_iter().flatten().cloned();
        let placed = self.placed(resource, version);
        let mut rows: Vec<Value> = recorded.chain(self.report(resource, version)).chain(placed).collect();
        rows.sort_by_key(|row| {
            let metadata = &row["object"]["metadata"];
            ["namespace", "name"].map(|field| metadata[field].as_str().unwrap_or_default().to_owned())
        });
        rows
    }

    /// Takes a pod of the namespace `default` that a request applies. False: there are enough.
    pub(super) fn place(&self, name: &str, request: &Recorded) -> bool {
        let mut placed = self.placed.lock();
        let has_room = placed.len() < MOST_PLACED || placed.contains_key(name);
        if has_room {
            placed.insert(name.to_owned(), (OffsetDateTime::now_utc(), request.clone()));
        }
        has_room
    }

    /// Returns whether there was one.
    pub(super) fn remove(&self, name: &str) -> bool {
        self.placed.lock().remove(name).is_some()
    }

    /// The rows of the pods that were applied: they run at once, on the first node.
    fn placed(&self, resource: Resource, version: u64) -> Vec<Value> {
        let placed = self.placed.lock();
        let applied = placed.iter().filter(|_| resource.plural == "pods");
        let node = &self.recording["nodes"][0]["object"]["metadata"]["name"];
        let row = |(name, (since, request)): (&String, &(OffsetDateTime, Recorded))| {
            let mut object: Value = serde_json::from_slice(&request.body()).ok()?;
            let since = since.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()?;
            object["metadata"]["name"] = name.as_str().into();
            object["metadata"]["namespace"] = "default".into();
            object["metadata"]["creationTimestamp"] = since.into();
            object["spec"]["nodeName"] = node.clone();
            object["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
            let cells = json!([name, "1/1", "Running", "0", "0s", "<none>", node, "<none>", "<none>"]);
            let mut row = json!({"cells": cells, "object": object});
            stamp(&mut row, version);
            Some(row)
        };
        applied.filter_map(row).collect()
    }

    /// The row of the report's pod at `version`, while there is one.
    pub(super) fn report(&self, resource: Resource, version: u64) -> Option<Value> {
        let step = version.checked_sub(FIRST_VERSION + 1).filter(|_| resource.plural == "pods")?;
        let (run, stage) = (step / LIFE, step % LIFE);
        let mut row = self.recording["report"].get(usize::try_from(stage).ok()?)?.clone();
        let created = self.started + Duration::seconds(i64::try_from((run * LIFE + 1) * STEP).ok()?);
        let metadata = &row["object"]["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default();
        let uid = format!("{:08x}{}", run + 1, uid.get(8..).unwrap_or_default());
        shift(&mut row, created - moment(&self.recording["report"][0]["object"]["metadata"]["creationTimestamp"])?);
        let name = json!(format!("report-{:04}", run + 1));
        row["object"]["metadata"]["uid"] = uid.into();
        row["object"]["metadata"]["name"] = name.clone();
        row["cells"][0] = name;
        stamp(&mut row, version);
        Some(row)
    }

    /// A pod after so many seconds.
    pub(super) fn pod(&self, namespace: &str, name: &str, seconds: u64) -> Option<Value> {
        let pods = Resource::all().find(|resource| resource.plural == "pods")?;
        let rows = self.rows(pods, Self::resource_version(seconds)).into_iter();
        let mut pods = rows.map(|mut row| row["object"].take());
        pods.find(|pod| pod["metadata"]["namespace"] == namespace && pod["metadata"]["name"] == name)
    }

    /// Number of lines of a log after so many seconds: one for each.
    pub(super) fn lines(seconds: u64) -> u64 {
        OLD_LINES + seconds
    }
}

/// Writes the resource version into the object of a row.
pub(super) fn stamp(row: &mut Value, version: u64) {
    row["object"]["metadata"]["resourceVersion"] = version.to_string().into();
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const ALL: [&Profile; 3] = [&BERLIN, &OSAKA, &LIMA];

    fn start() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap()
    }

    fn text<'a>(row: &'a Value, path: &str) -> &'a str {
        row["object"].pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    #[test]
    fn pods_live_where_the_cluster_says_they_do_and_no_two_objects_share_a_uid() {
        let mut uids = HashSet::new();
        for profile in ALL {
            let cluster = Cluster::new(profile, start());
            let of = |plural: &str| {
                let resource = Resource::all().find(|resource| resource.plural == plural).unwrap();
                cluster.rows(resource, Cluster::resource_version(STEP))
            };
            for resource in Resource::all() {
                for row in of(resource.plural) {
                    assert!(uids.insert(text(&row, "/metadata/uid").to_owned()), "{}: {row}", profile.name);
                    let kind = (text(&row, "/kind"), text(&row, "/apiVersion"));
                    assert_eq!(kind, (resource.kind(), resource.api_version()));
                    assert_eq!(row["cells"].as_array().map(Vec::len), resource.columns().as_array().map(Vec::len));
                    assert_eq!(row["cells"][0], row["object"]["metadata"]["name"]);
                }
            }
            let names = |plural: &str| -> HashSet<String> {
                of(plural).iter().map(|row| text(row, "/metadata/name").to_owned()).collect()
            };
            let (namespaces, nodes, mut addresses) = (names("namespaces"), names("nodes"), HashSet::new());
            assert_eq!(nodes, names("leases"), "kubectl describe asks for the lease of each node");
            for pod in of("pods") {
                assert!(namespaces.contains(text(&pod, "/metadata/namespace")), "{pod}");
                let (node, address) = (text(&pod, "/spec/nodeName"), text(&pod, "/status/podIP"));
                assert!(node.is_empty() || nodes.contains(node), "{pod}");
                assert!(address.is_empty() || addresses.insert(address.to_owned()), "{address} twice");
            }
        }
    }

    #[test]
    fn a_report_comes_runs_ends_and_goes() {
        let cluster = Cluster::new(&BERLIN, start());
        let pods = Resource::all().find(|resource| resource.plural == "pods").unwrap();
        let seen: Vec<_> = (0..=5).map(|step| cluster.report(pods, Cluster::resource_version(step * STEP))).collect();
        let shown = seen.iter().map(|row| {
            row.as_ref().map(|row| {
                (text(row, "/metadata/name"), text(row, "/status/phase"), text(row, "/metadata/creationTimestamp"))
            })
        });
        let (first, second) = ("2026-09-21T14:13:22Z", "2026-09-21T14:13:30Z");
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                None,
                Some(("report-0001", "Pending", first)),
                Some(("report-0001", "Running", first)),
                Some(("report-0001", "Succeeded", first)),
                None,
                Some(("report-0002", "Pending", second)),
            ]
        );
        let uid = |index: usize| seen[index].as_ref().map(|row| text(row, "/metadata/uid").to_owned());
        assert!(uid(1) == uid(3) && uid(1) != uid(5), "another pod, not the same again");
    }

    #[test]
    fn a_watch_may_start_at_the_versions_of_the_last_hour() {
        let now = Cluster::resource_version(10_000);
        for (version, remembered) in
            [(now, true), (now - REMEMBERED, true), (now - REMEMBERED - 1, false), (now + 1, false)]
        {
            assert_eq!(Cluster::remembers(version, 10_000), remembered, "{version}");
        }
        assert!(Cluster::remembers(FIRST_VERSION, 0) && !Cluster::remembers(FIRST_VERSION - 1, 0));
    }
}
