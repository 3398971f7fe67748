//! The objects in a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use serde_json::Value;

use crate::cluster::Cluster;

/// Time for pods to end and for namespaces to be empty.
const GONE: Duration = Duration::from_secs(90);
/// Kinds whose objects come and go without a test's doing.
const RESTLESS: [&str; 4] = ["events", "events.events.k8s.io", "componentstatuses", "endpoints"];
/// How the Leases of the cluster's own programs and nodes begin, which come and go as well.
const RESTLESS_LEASES: &str = "Lease kube-";
/// Stands for the namespace of what has none.
const NONE: &str = "<none>";
/// What an uninstalled chart leaves of its controllers, as the page on installing says.
pub const LEFT: &str = "Lease vela-system cluster-gateway-controllers";
/// The fields of a lasting object that something may have changed.
const COMPARED: [&str; 6] = ["/metadata/labels", "/rules", "/roleRef", "/subjects", "/webhooks", "/spec/validations"];

/// The compared fields of each object, by its kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory(BTreeMap<String, String>);

// === impl Inventory ===

impl Inventory {
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let objects = cluster.server.everything(&RESTLESS)?;
        let objects = objects.iter().map(|object| (name(object), compared(object)));
        let objects: BTreeMap<String, String> =
            objects.filter(|(name, _)| !name.starts_with(RESTLESS_LEASES)).collect();
        ensure!(objects.contains_key("Namespace <none> kube-system"), "no list: {objects:?}");
        Ok(Self(objects))
    }

    /// Objects that are new or changed since `before`, and objects that are gone.
    pub fn since(&self, before: &Self) -> Vec<String> {
        let is_new = |(object, has): &(&String, &String)| before.0.get(*object) != Some(has);
        let now = self.0.iter().filter(is_new).map(|(object, has)| match before.0.get(object) {
            Some(had) => format!("{object} changed: {had}: {has}"),
            None => object.clone(),
        });
        // Pods that were ending may be gone.
        let gone = before.0.keys().filter(|object| !object.starts_with("Pod ") && !self.0.contains_key(*object));
        now.chain(gone.map(|object| format!("{object} gone"))).collect()
    }

    /// Deletes what `cluster` holds beyond this inventory, as far as it can be deleted: for what a
    /// failed test leaves, so that those after it begin with a cluster as it was.
    pub fn tidy(&self, cluster: &Cluster) -> Result<()> {
        for object in Self::of(cluster)?.0.keys().filter(|object| !self.0.contains_key(*object)) {
            let [kind, namespace, name] = object.split(' ').collect::<Vec<_>>()[..] else { continue };
            let namespace = if namespace == NONE { "default" } else { namespace };
            let delete = format!("delete {kind} {name} -n {namespace} --ignore-not-found --wait=false");
            // Some go with others, and some their owners would make again.
            let _ = cluster.kubectl().ok(&delete);
        }
        self.wait_restored(cluster, |_| false)
    }

    /// Waits until `cluster` again holds this inventory and nothing else, except objects that
    /// `stays` accepts.
    pub fn wait_restored(&self, cluster: &Cluster, stays: impl Fn(&str) -> bool) -> Result<()> {
        let mut left: Vec<String> = Vec::new();
        wait::until("everything to be as it was", GONE, || {
            // A look at everything is some 65 requests, and pods and namespaces take half a minute
            // to go.
            ensure!(left.iter().all(|object| is_gone(cluster, object)), "left: {}", left.join("; "));
            left = Self::of(cluster)?.since(self).into_iter().filter(|object| !stays(object)).collect();
            ensure!(left.is_empty(), "left: {}", left.join("; "));
            Ok(())
        })
        .with_context(|| cluster.plan.name)
    }
}

/// Kind, namespace and name.
fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    let words = [&object["kind"], &metadata["namespace"], &metadata["name"]];
    words.map(|word| word.as_str().unwrap_or(NONE)).join(" ")
}

fn compared(object: &Value) -> String {
    let texts = COMPARED.map(|field| object.pointer(field).map_or_else(|| NONE.to_owned(), ToString::to_string));
    texts.join(" ")
}

/// Whether an object that was left is gone, as far as one request tells: of a change, and of a kind
/// that is gone too, only another look at everything does.
fn is_gone(cluster: &Cluster, object: &str) -> bool {
    let [kind, namespace, name] = object.split(' ').collect::<Vec<_>>()[..] else { return true };
    let place = if namespace == NONE { String::new() } else { format!(" -n {namespace}") };
    cluster.server.read(&format!("{kind} {name}{place}")).map_or(true, |found| found.is_null())
}
