//! What lives in the sample members: two small, different, believable clusters and a third to add later.
//!
//! Everything but the dates is a function of the names, so that each run shows the same pods, addresses and
//! identifiers, and a test or a document can quote them.

mod node;
mod pod;

use serde_json::json;
use time::{Duration, OffsetDateTime};

pub(crate) use self::pod::{Pod, Stage};
use super::{clock, kind::Kind, model::Model};

/// The description of a sample cluster.
#[derive(Debug)]
pub struct Profile {
    /// The cluster's name.
    pub name: &'static str,
    /// `gitVersion` of its API server and kubelets.
    pub version: &'static str,
    /// Names of its nodes; the first is the control plane.
    pub nodes: &'static [&'static str],
    /// Second byte of its pod and node addresses.
    pub network: u8,
    apps: &'static [App],
}

/// A workload: pods that differ in their suffix only.
#[derive(Debug)]
struct App {
    namespace: &'static str,
    name: &'static str,
    containers: &'static [Container],
    replicas: u8,
    state: AppState,
    age_hours: i64,
}

/// A container of a sample pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Container {
    /// Its name.
    pub(crate) name: &'static str,
    /// The image it claims to run.
    pub(crate) image: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum AppState {
    Running,
    Crashing,
    ImageMissing,
    Finished,
    Unschedulable,
}

/// The three-node cluster of the demo.
pub static BERLIN: Profile = Profile {
    name: "berlin",
    version: "v1.32.9",
    nodes: &["berlin-cp-1", "berlin-a", "berlin-b"],
    network: 10,
    apps: &[
        app("default", "web", &[container("nginx", "nginx:1.29")], 2, AppState::Running, 75),
        app("default", "cache", &[container("valkey", "valkey/valkey:8.1")], 1, AppState::Running, 75),
        app("shop", "cart", &[container("cart", "example/cart:2.4"), MESH], 2, AppState::Running, 30),
        app("shop", "payments", &[container("payments", "example/payments:0.9")], 1, AppState::Crashing, 5),
        app("shop", "import", &[container("import", "example/import:1.0")], 1, AppState::Finished, 26),
        app("kube-system", "coredns", &[container("coredns", "coredns/coredns:1.12")], 2, AppState::Running, 980),
    ],
};

/// The two-node cluster of the demo.
pub static OSAKA: Profile = Profile {
    name: "osaka",
    version: "v1.33.5",
    nodes: &["osaka-cp-1", "osaka-a"],
    network: 20,
    apps: &[
        app("default", "web", &[container("nginx", "nginx:1.29")], 1, AppState::Running, 12),
        app("sensors", "ingest", &[container("ingest", "example/ingest:3.1"), MESH], 3, AppState::Running, 340),
        app("sensors", "replay", &[container("replay", "example/replay:3.2-rc1")], 1, AppState::ImageMissing, 1),
        app("sensors", "train", &[container("train", "example/train:0.3")], 1, AppState::Unschedulable, 2),
        app("kube-system", "coredns", &[container("coredns", "coredns/coredns:1.12")], 2, AppState::Running, 2200),
    ],
};

/// The single-node cluster that joins while the demo runs.
pub static LIMA: Profile = Profile {
    name: "lima",
    version: "v1.33.5",
    nodes: &["lima-1"],
    network: 30,
    apps: &[
        app("default", "kiosk", &[container("kiosk", "example/kiosk:1.7")], 1, AppState::Running, 3),
        app("kube-system", "coredns", &[container("coredns", "coredns/coredns:1.12")], 1, AppState::Running, 3),
    ],
};

const MESH: Container = container("proxy", "example/mesh-proxy:1.8");

/// The namespace of the nodes' leases (`k8s.io/api/core/v1`, `NamespaceNodeLease`).
const LEASES: &str = "kube-node-lease";

/// The resource version a sample cluster starts at: one that looks as if it had lived a while.
const FIRST_VERSION: u64 = 48_200;

// === impl Profile ===

impl Profile {
    /// A model filled with this cluster's objects as they are at `now`.
    pub(crate) fn populate(&self, now: OffsetDateTime) -> Model {
        let mut model = Model::new(FIRST_VERSION + u64::from(self.network) * 1_000);
        for namespace in self.namespaces() {
            model.put(Kind::Namespace, self.namespace(namespace, now));
        }
        for (index, name) in (1..).zip(self.nodes) {
            model.put(Kind::Node, self.node(name, index, now));
            model.put(Kind::Lease, self.lease(name, index, now));
        }
        let replicas = self.apps.iter().flat_map(|app| (0..app.replicas).map(move |replica| (app, replica)));
        for (index, (app, replica)) in (0..).zip(replicas) {
            model.put(Kind::Pod, self.replica(app, replica, index, now).body());
        }
        model
    }

    /// The namespaces that workloads and leases live in, sorted, `default` always among them.
    fn namespaces(&self) -> Vec<&'static str> {
        let mut namespaces: Vec<_> = self.apps.iter().map(|app| app.namespace).chain(["default", LEASES]).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        namespaces
    }

    /// The node that the `index`-th pod runs on: the workers in turn, or the only node.
    pub(crate) fn worker(&self, index: u8) -> &'static str {
        let workers = if self.nodes.len() > 1 { &self.nodes[1..] } else { self.nodes };
        workers[usize::from(index) % workers.len()]
    }

    /// The addresses of pods: one of 250 in the cluster's own network.
    pub(crate) fn pod_address(&self, index: u8) -> String {
        format!("10.{}.0.{}", self.network, 4 + index % 250)
    }

    /// The address of a node.
    pub(crate) fn node_address(&self, name: &str) -> String {
        let index = self.nodes.iter().position(|node| *node == name).unwrap_or_default();
        format!("192.168.{}.{}", self.network, index + 11)
    }

    fn namespace(&self, name: &str, now: OffsetDateTime) -> serde_json::Value {
        json!({
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": uid(&[self.name, "namespace", name]),
                "creationTimestamp": clock::timestamp(now - Duration::days(i64::from(self.network) * 4)),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        })
    }

    fn replica(&self, app: &App, replica: u8, index: u8, now: OffsetDateTime) -> Pod<'static> {
        let created = now - Duration::hours(app.age_hours) - Duration::seconds(i64::from(index) * 7);
        let hash = suffix(&[self.name, app.name], 9);
        let tail = suffix(&[self.name, app.namespace, app.name, &replica.to_string()], 5);
        let name = match app.state {
            AppState::Finished => format!("{}-{tail}", app.name),
            _ => format!("{}-{hash}-{tail}", app.name),
        };
        let node = self.worker(index);
        let stage = match app.state {
            AppState::Running => Stage::Running,
            AppState::Crashing => Stage::Crashing { restarts: 7, crashed: now - Duration::seconds(95) },
            AppState::ImageMissing => Stage::ImageMissing,
            AppState::Finished => Stage::Finished(created + Duration::minutes(4)),
            AppState::Unschedulable => Stage::Unschedulable,
        };
        Pod {
            uid: uid(&[self.name, app.namespace, &name]),
            namespace: app.namespace,
            name,
            app: app.name,
            containers: app.containers,
            node,
            node_address: self.node_address(node),
            address: self.pod_address(index),
            created,
            stage,
        }
    }
}

const fn container(name: &'static str, image: &'static str) -> Container {
    Container { name, image }
}

const fn app(
    namespace: &'static str,
    name: &'static str,
    containers: &'static [Container],
    replicas: u8,
    state: AppState,
    age_hours: i64,
) -> App {
    App { namespace, name, containers, replicas, state, age_hours }
}

/// FNV-1a over the parts: stable between runs and builds, which std's hasher does not promise.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A name suffix in the alphabet of `k8s.io/apimachinery/pkg/util/rand`, at most 13 characters of it.
fn suffix(parts: &[&str], length: usize) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = hash(parts);
    let characters = (0..length).map(|_| {
        let index = usize::try_from(rest % 27).unwrap_or_default();
        rest /= 27;
        char::from(ALPHABET[index])
    });
    characters.collect()
}

/// A `metadata.uid` in the form of a version 4 UUID.
pub(crate) fn uid(parts: &[&str]) -> String {
    let high = hash(parts);
    let low = hash(&[&high.to_string(), "uid"]);
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests;
