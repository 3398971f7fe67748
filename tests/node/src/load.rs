//! Clients that use clusters through hub and gateway while something happens to these: readers, one
//! client that replaces and deletes objects, and a watcher of objects that are written meanwhile.
//!
//! A request may fail where client-go repeats it by itself ([`tried`]). A watch may end at any
//! time, and is continued from the last version.

mod changer;
mod crowd;
mod reader;
mod tried;
mod watcher;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chaos_tests::caller::{Caller, Connections};
use hub_tests::wait;
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

pub use self::crowd::Crowd;
use self::watcher::Watched;
use crate::cluster::Cluster;

/// Namespace of the account on the hub, and of the objects written to members; also the name of the
/// account and of its rights.
pub const NAMESPACE: &str = "load";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Pause between two requests of a client: several fall into each step of a rollout, and the
/// machine, on which hub, member and all programs run, has something else to do.
const PACE: Duration = Duration::from_millis(100);
/// Time for requests in flight to end, and for the last event to arrive.
const END: Duration = Duration::from_mins(1);

/// Running clients.
pub struct Load {
    runtime: Runtime,
    shared: Arc<Shared>,
    /// Readers and changers.
    callers: Vec<JoinHandle<()>>,
    watched: Vec<Watched>,
}

/// State that clients share and report to.
#[derive(Debug, Default)]
struct Shared {
    ended: AtomicBool,
    reads: AtomicUsize,
    changes: AtomicUsize,
    repeated: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

/// Counts of what clients did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    pub reads: usize,
    /// Objects that were replaced, or deleted.
    pub changes: usize,
    /// Requests that failed and that a client repeats by itself.
    pub repeated: usize,
    /// Objects that were written, all of which were seen.
    pub events: usize,
}

/// A cluster's name, and the cluster.
pub type Target<'a> = (&'a str, &'a Cluster);

// === impl Shared ===

impl Shared {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn wrong(&self, what: String) {
        self.wrong.lock().push(what);
    }
}

// === impl Load ===

impl Load {
    /// Starts clients of each target, which have all rights there, and waits until each has had an
    /// answer.
    pub fn start(hub: &Cluster, targets: &[Target<'_>]) -> Result<Self> {
        let token = account(hub)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let shared = Arc::new(Shared::default());
        let (mut callers, mut watched) = (Vec::new(), Vec::new());
        for (name, cluster) in targets {
            let base = base(name);
            let caller = |how| {
                let (address, authority) = (hub.server.address(), hub.server.authority());
                Caller::with_token(address, Some(authority), &token, how)
            };
            for how in [Connections::Fresh, Connections::Shared] {
                let (caller, shared, base) = (caller(how), Arc::clone(&shared), base.clone());
                callers.push(runtime.spawn(async move { reader::run(&shared, &caller, &base).await }));
            }
            namespace(cluster)?;
            allow(cluster)?;
            let (through, straight) = (caller(Connections::Shared), straight(cluster));
            let (shared_too, base_too) = (Arc::clone(&shared), base.clone());
            callers.push(runtime.spawn(async move { changer::run(&shared_too, &through, &base_too, &straight).await }));
            watched.push(Watched::start(&runtime, &shared, caller(Connections::Shared), &base, cluster));
        }
        let load = Self { runtime, shared, callers, watched };
        load.wait_for_more(4 * targets.len())?;
        Ok(load)
    }

    /// Adds so many readers of a cluster.
    pub fn read_more(&mut self, hub: &Cluster, name: &str, readers: usize) -> Result<()> {
        let token = account(hub)?;
        for _ in 0..readers {
            let (address, authority) = (hub.server.address(), hub.server.authority());
            let caller = Caller::with_token(address, Some(authority), &token, Connections::Shared);
            let (shared, base) = (Arc::clone(&self.shared), base(name));
            self.callers.push(self.runtime.spawn(async move { reader::run(&shared, &caller, &base).await }));
        }
        Ok(())
    }

    /// Requests so far that failed and were repeated.
    pub fn repeated(&self) -> usize {
        self.shared.repeated.load(Ordering::Relaxed)
    }

    /// Waits until `reads` more reads were answered.
    pub fn wait_for_more(&self, reads: usize) -> Result<()> {
        let enough = self.shared.reads.load(Ordering::Relaxed) + reads;
        wait::until_true("reads", END, || Ok(self.shared.reads.load(Ordering::Relaxed) >= enough))
            .with_context(|| self.shared.wrong.lock().join("\n"))
    }

    /// Ends the load. An error if a client got an answer that it must not get, or a watcher missed
    /// an event.
    pub fn finish(self) -> Result<Tally> {
        self.wait_for_more(1)?;
        self.shared.ended.store(true, Ordering::Relaxed);
        for caller in self.callers {
            self.runtime.block_on(async { tokio::time::timeout(END, caller).await }).context("a caller")??;
        }
        let mut events = 0;
        for watched in self.watched {
            events += watched.finish(&self.runtime, END)?;
        }
        let wrong = self.shared.wrong.lock();
        ensure!(wrong.is_empty(), "{} failures:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        let (reads, changes) = (count(&self.shared.reads), count(&self.shared.changes));
        ensure!(changes > 0, "nothing was changed");
        Ok(Tally { reads, changes, repeated: count(&self.shared.repeated), events })
    }
}

/// A caller that asks the cluster itself, as its administrator.
fn straight(cluster: &Cluster) -> Caller {
    Caller::with_certificate(cluster.server.address(), cluster.server.authority(), cluster.server.admin())
}

fn base(cluster: &str) -> String {
    format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{cluster}/proxy")
}

/// Who may do everything on the hub, by a token, until [`clean`].
pub fn account(hub: &Cluster) -> Result<String> {
    namespace(hub)?;
    let token = hub.server.service_account_token(NAMESPACE, NAMESPACE)?;
    let binding = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}]});
    hub.server.apply(&[binding])?;
    Ok(token)
}

/// Grants the rights that changing objects there needs, whatever rights the cluster is registered
/// with.
fn allow(cluster: &Cluster) -> Result<()> {
    let binding = json!({"apiVersion": RBAC, "kind": "RoleBinding",
        "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}]});
    cluster.server.apply(&[binding])?;
    let attributes = json!({"namespace": NAMESPACE, "verb": "update", "resource": "configmaps"});
    wait::until_true("the right to change", END, || cluster.server.may(NAMESPACE, NAMESPACE, &attributes))
}

fn namespace(cluster: &Cluster) -> Result<()> {
    cluster.server.apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})])
}

/// Removes the objects that clients needed.
pub fn clean(clusters: &[&Cluster]) -> Result<()> {
    let all = format!("namespace,clusterrolebinding {NAMESPACE} --ignore-not-found");
    clusters.iter().try_for_each(|cluster| cluster.server.delete(&all))
}
