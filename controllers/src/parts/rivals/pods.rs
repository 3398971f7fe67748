//! The pods of a rival's Deployment: without leader election they hold no Lease.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::watcher::watcher;
use kube::{Api, Client};
use net::backoff::Backoff;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Rivals;
use crate::calls::{NOT_FOUND, bounded, paged};
use crate::feed::follow::{self, Change};
use crate::parts::catch_up::WATCH;
use crate::raw::{Bounded, CONTENTS};
use crate::term::{Term, WITHIN};

/// Between two questions whether the hub has Deployments at all.
const TRIES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));

/// A Deployment.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    pub namespace: &'static str,
    pub name: &'static str,
}

/// What is known of its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// Not asked yet.
    Unknown,
    /// There are none, however ready.
    None,
    Run,
}

/// What the hub said of them last, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPods {
    pub pods: Pods,
    /// Whether that holds for the term: asked in it, or nothing to ask.
    pub is_of_term: bool,
}

/// Tells `known` as it changes. Asks anew when the term begins, because the watch of a standby may
/// be dead without a word. While the hub says nothing, what was known counts. Never ends.
pub async fn look(client: Client, deployment: Option<Workload>, term: &Term, known: &watch::Sender<KnownPods>) {
    let Some(workload) = deployment else { return std::future::pending().await };
    if !term.has_begun() {
        tokio::select! {
            () = ask(&client, workload, known, false) => {}
            () = term.begins() => {}
        }
    }
    ask(&client, workload, known, true).await;
}

async fn ask(client: &Client, workload: Workload, known: &watch::Sender<KnownPods>, is_of_term: bool) {
    let Workload { namespace, name } = workload;
    let say = |pods| {
        known.send_replace(KnownPods { pods, is_of_term });
    };
    let api: Api<Bounded<Deployment>> = Api::namespaced(client.clone(), namespace);
    let only = paged().fields(&format!("metadata.name={name}")).timeout(WATCH);
    let is_told = AtomicBool::new(false);
    let apply = follow::whole(|change| {
        is_told.store(true, Ordering::Relaxed);
        say(match change {
            Change::Listed(found) => found.first().map_or(Pods::None, Pods::of),
            Change::Applied(found) => Pods::of(&found),
            Change::Deleted(_) => Pods::None,
        });
    });
    let unserved = async {
        // The watch speaks again only on a change: what it said stays.
        if is_unserved(client).await && !is_told.load(Ordering::Relaxed) {
            say(Pods::None);
        }
    };
    tokio::join!(unserved, follow::each(watcher(api, only), format!("Deployment {namespace}/{name}"), apply));
}

/// Whether the hub has no Deployments at all, like control planes without workloads. Asks until it
/// answers: a watch of them would never be listed there.
async fn is_unserved(client: &Client) -> bool {
    let mut failures = 0;
    loop {
        match bounded(WITHIN, client.list_api_group_resources("apps/v1")).await {
            Err(error) if error.concerns_all() => sleep(TRIES.wait(failures)).await,
            answer => return answer.is_err_and(|error| error.is(NOT_FOUND)),
        }
        failures = failures.saturating_add(1);
    }
}

// === impl KnownPods ===

impl KnownPods {
    /// What is known before the first answer. Without a Deployment to look for, no request is sent.
    pub fn before(deployment: Option<Workload>) -> Self {
        let pods = if deployment.is_some() { Pods::Unknown } else { Pods::None };
        Self { pods, is_of_term: deployment.is_none() }
    }
}

// === impl Pods ===

impl Pods {
    /// One whose contents cannot be read counts as one that runs.
    fn of(deployment: &Bounded<Deployment>) -> Self {
        let pods = deployment.object.status.as_ref().and_then(|status| status.replicas);
        let runs = deployment.left_out == Some(CONTENTS) || pods.is_some_and(|pods| pods > 0);
        if runs { Self::Run } else { Self::None }
    }

    /// What is known by the Leases and by these pods.
    pub fn beside(self, leases: Rivals, deployment: Option<Workload>) -> Rivals {
        match (self, leases, deployment) {
            (Self::Run, Rivals::None | Rivals::Unknown, Some(Workload { namespace, name })) => {
                Rivals::Alive { namespace: namespace.to_owned(), holder: format!("Deployment {name}") }
            }
            (Self::Unknown, Rivals::None, _) => Rivals::Unknown,
            (_, leases, _) => leases,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::scripted;

    fn pods(status: &serde_json::Value) -> Pods {
        let metadata = json!({"name": "theirs", "namespace": "n", "resourceVersion": "1"});
        Pods::of(&serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap())
    }

    #[test]
    fn a_deployment_with_pods_runs_before_they_are_ready() {
        for (status, expected) in [
            (json!({}), Pods::None),
            (json!({"replicas": 0}), Pods::None),
            (json!({"replicas": 1, "unavailableReplicas": 1}), Pods::Run),
            (json!({"replicas": 2, "availableReplicas": 1}), Pods::Run),
            (json!({"replicas": "x"}), Pods::Run),
        ] {
            assert_eq!(pods(&status), expected, "{status}");
        }
    }

    /// The hub is busy when it is asked whether it has Deployments, and then not set up whole.
    #[tokio::test(start_paused = true)]
    async fn a_late_answer_that_there_are_no_deployments_takes_back_no_pods() {
        let asked = Arc::new(AtomicUsize::new(0));
        let times = Arc::clone(&asked);
        let client = scripted::client(move |head, _| {
            let query = head.uri.query().unwrap_or_default();
            match head.uri.path() {
                "/apis/apps/v1" if times.fetch_add(1, Ordering::Relaxed) == 0 => {
                    Some(scripted::status(503, "", "busy"))
                }
                "/apis/apps/v1" => Some(scripted::status(404, "NotFound", "not found")),
                _ if query.contains("watch=true") => None,
                _ => {
                    let metadata = json!({"name": "theirs", "namespace": "n", "resourceVersion": "1"});
                    let items = json!([{"metadata": metadata, "status": {"replicas": 1}}]);
                    let list = json!({"apiVersion": "apps/v1", "kind": "DeploymentList",
                        "metadata": {"resourceVersion": "9"}, "items": items});
                    Some((200, list))
                }
            }
        });
        let theirs = Workload { namespace: "n", name: "theirs" };
        let known = watch::Sender::new(KnownPods::before(Some(theirs)));
        // Longer than until the second try, and shorter than a watch lasts.
        let ended = timeout(WITHIN, ask(&client, theirs, &known, true)).await;
        assert!(ended.is_err() && asked.load(Ordering::Relaxed) == 2);
        assert_eq!(*known.borrow(), KnownPods { pods: Pods::Run, is_of_term: true });
    }

    #[test]
    fn pods_count_beside_leases_that_nobody_holds() {
        let theirs = Some(Workload { namespace: "n", name: "theirs" });
        let held = || Rivals::Alive { namespace: "m".into(), holder: "h".into() };
        let runs = Rivals::Alive { namespace: "n".into(), holder: "Deployment theirs".into() };
        assert_eq!(Pods::Run.beside(Rivals::None, theirs), runs);
        assert_eq!(Pods::Run.beside(Rivals::Unknown, theirs), runs);
        assert_eq!(Pods::Run.beside(held(), theirs), held());
        assert_eq!(Pods::None.beside(held(), theirs), held());
        assert_eq!(Pods::None.beside(Rivals::None, theirs), Rivals::None);
        assert_eq!(Pods::Unknown.beside(Rivals::None, theirs), Rivals::Unknown, "nothing begins before that");
        let nobody = KnownPods::before(None);
        assert_eq!((nobody.pods.beside(Rivals::None, None), nobody.is_of_term), (Rivals::None, true));
    }
}
