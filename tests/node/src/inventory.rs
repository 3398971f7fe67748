//! What a cluster holds.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;

use crate::cluster::Cluster;

/// For pods to end, and for namespaces to be empty.
const GONE: Duration = Duration::from_secs(90);
/// What comes and goes by itself.
const RESTLESS: [&str; 5] =
    ["events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "endpoints"];
const COLUMNS: &str = "custom-columns=A:.kind,B:.metadata.namespace,C:.metadata.name";

/// Kind, namespace and name of each object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory(BTreeSet<String>);

// === impl Inventory ===

impl Inventory {
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let kubectl = cluster.kubectl();
        let kinds = kubectl.ok("api-resources --verbs=list -o name")?;
        let kinds: Vec<&str> = kinds.lines().filter(|kind| !RESTLESS.contains(kind)).collect();
        let words = ["get", &kinds.join(","), "-A", "--no-headers", "--ignore-not-found", "-o", COLUMNS];
        let listed = kubectl.args(words).run()?.success()?;
        let objects: BTreeSet<String> =
            listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        ensure!(objects.iter().any(|object| object.starts_with("Node ")), "a list without nodes");
        Ok(Self(objects))
    }

    /// What is here and was not in `before`.
    pub fn since(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }

    /// Waits until `cluster` holds nothing that it did not hold then, but what `stays` says.
    pub fn wait_restored(&self, cluster: &Cluster, stays: impl Fn(&str) -> bool) -> Result<()> {
        wait::until("nothing to be left", GONE, || {
            let left: Vec<String> =
                Self::of(cluster)?.since(self).into_iter().filter(|object| !stays(object)).collect();
            ensure!(left.is_empty(), "left: {}", left.join("; "));
            Ok(())
        })
        .with_context(|| cluster.plan.name)
    }
}
