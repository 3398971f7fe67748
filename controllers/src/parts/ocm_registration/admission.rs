//! Checks whether the admission policies are in force. Without them any user with the right to
//! update a `ManagedCluster` could accept it, any user with the right to write a
//! `ManagedClusterSetBinding` could bind any set, and the controllers' own token would have no
//! limits. So without them no cluster is accepted.
//!
//! A probe asks the hub instead of reading the policies, because an existing policy need not be
//! enforced (a missing binding, a disabled plugin). Each policy refuses one dry run by the same
//! expression that guards its objects: for all users, a change of a `ManagedCluster` with a certain
//! annotation, and for the controllers, a role that is no cluster's. The dry runs need no right
//! that this part lacks.

use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::hub_calls::{CallError, LeaderClient};
use crate::calls::{creating, merging};

/// The policies in `charts/cluster-gateway/templates/controllers-admission.yaml` refuse it.
const PROBE_ANNOTATION: &str = "cluster.core.oam.dev/admission-probe";
/// Never created.
const PROBE_ROLE: &str = "cluster-gateway-admission-probe";
/// How long a result counts, because many clusters may be accepted at once.
const FRESH: Duration = Duration::from_secs(2);

/// Most clusters that are asked with at once, one after the other.
pub const TRIES: usize = 3;

/// The chart's policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Guards the acceptance of clusters, and their moves between sets.
    Clusters,
    /// Guards the binding of sets.
    Bindings,
    /// Limits what the controllers may do with the rights that they grant.
    Limits,
}

/// Result of a probe of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    InForce,
    NotInForce,
    /// The probe failed.
    Unknown(String),
}

pub struct Admission {
    hub: LeaderClient,
    clusters: Api<DynamicObject>,
    roles: Api<ClusterRole>,
    last: Mutex<Option<Instant>>,
    /// Held while a cluster's probe runs that others wait for: when the last of those began.
    asking: tokio::sync::Mutex<Option<Instant>>,
}

// === impl Policy ===

impl Policy {
    pub const ALL: [Self; 3] = [Self::Clusters, Self::Bindings, Self::Limits];

    /// Suffix of the policy's name in the chart.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clusters => "managedclusters",
            Self::Bindings => "managedclustersetbindings",
            Self::Limits => "limits",
        }
    }

    /// Condition in `/readyz`: the policy is not in force.
    pub const fn condition(self) -> &'static str {
        match self {
            Self::Clusters => "ocm-admission-managedclusters",
            Self::Bindings => "ocm-admission-managedclustersetbindings",
            Self::Limits => "ocm-admission-limits",
        }
    }

    /// Part of the message with which the policy refuses the probe.
    fn proof(self) -> &'static str {
        match self {
            Self::Clusters => "cluster-gateway admission is in force",
            Self::Bindings => "cluster-gateway admission of managedclustersetbindings is in force",
            Self::Limits => "the controllers write roles and bindings of clusters only",
        }
    }

    fn without(self) -> &'static str {
        match self {
            Self::Clusters => "any user that may update a ManagedCluster could accept it",
            Self::Bindings => "any user that may write a ManagedClusterSetBinding could bind any set",
            Self::Limits => "a stolen token of these controllers could use every right that they grant to agents",
        }
    }
}

// === impl Admission ===

impl Admission {
    pub fn new(hub: LeaderClient, clusters: Api<DynamicObject>) -> Self {
        let roles = Api::all(hub.client.clone());
        Self { hub, clusters, roles, last: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    /// Probes each policy by dry runs: of a change of the `ManagedCluster` `name`, and of a role.
    /// Without a cluster there is nothing to accept, so only the policy of roles is probed. That
    /// all policies are in force is remembered for [`FRESH`].
    pub async fn ask(&self, name: Option<&str>) -> Vec<(Policy, Verdict)> {
        let began = Instant::now();
        let asked = Policy::ALL.into_iter().filter(|policy| name.is_some() || *policy == Policy::Limits);
        let told =
            join_all(asked.map(async |policy| (policy, self.probe(policy, name.unwrap_or_default()).await))).await;
        let are_all = name.is_some() && told.iter().all(|(_, verdict)| *verdict == Verdict::InForce);
        *self.last.lock() = are_all.then_some(began);
        told
    }

    /// The same with one of these clusters, up to [`TRIES`]: an agent may have filled its own, so
    /// that the hub refuses any change of it before it asks a policy. That says nothing of others.
    pub async fn ask_any(&self, names: Vec<String>) -> Vec<(Policy, Verdict)> {
        let mut last = None;
        for name in names.iter().take(TRIES) {
            let told = self.ask(Some(name)).await;
            if !told.iter().any(|(_, verdict)| matches!(verdict, Verdict::Unknown(_))) {
                return told;
            }
            last = Some(told);
        }
        match last {
            Some(told) => told,
            None => self.ask(None).await,
        }
    }

    /// Why the cluster `name` must not be accepted, if so. Waits for at most two probes of others:
    /// one that ran already, whose result may be too old when it comes, and the next.
    pub async fn objection(&self, name: &str) -> Option<String> {
        let arrived = Instant::now();
        if self.were_in_force(arrived) {
            return None;
        }
        let mut last = self.asking.lock().await;
        if self.were_in_force(arrived) {
            return None;
        }
        // Only what is in force says something of all clusters: otherwise each asks for itself.
        if last.is_some_and(|began| began >= arrived) {
            drop(last);
            return self.objection_to(name).await;
        }
        let began = Instant::now();
        let objection = self.objection_to(name).await;
        *last = Some(began);
        objection
    }

    async fn objection_to(&self, name: &str) -> Option<String> {
        let told = self.ask(Some(name)).await;
        let objections: Vec<String> = told.iter().filter_map(|(policy, verdict)| verdict.objection(*policy)).collect();
        (!objections.is_empty()).then(|| objections.join("; "))
    }

    /// Whether a probe says so for one who `arrived` then. However long it took, a probe that began
    /// later is no older than one's own would be.
    fn were_in_force(&self, arrived: Instant) -> bool {
        self.last.lock().is_some_and(|began| began >= arrived || began.elapsed() < FRESH)
    }

    async fn probe(&self, policy: Policy, name: &str) -> Verdict {
        let answer = match policy {
            Policy::Clusters => self.annotate(name, "").await,
            Policy::Bindings => self.annotate(name, policy.name()).await,
            Policy::Limits => self.create_role().await,
        };
        match answer {
            Ok(()) => Verdict::NotInForce,
            Err(CallError::Hub(kube::Error::Api(status))) if status.message.contains(policy.proof()) => {
                Verdict::InForce
            }
            Err(error) => Verdict::Unknown(error.to_string()),
        }
    }

    async fn annotate(&self, name: &str, value: &str) -> Result<(), CallError> {
        let change = json!({"metadata": {"annotations": {PROBE_ANNOTATION: value}}});
        let dry = PatchParams { dry_run: true, ..merging() };
        self.hub.read(self.clusters.patch(name, &dry, &Patch::Merge(&change))).await.map(drop)
    }

    /// A role that grants nothing and has no cluster's label.
    async fn create_role(&self) -> Result<(), CallError> {
        let metadata = ObjectMeta { name: Some(PROBE_ROLE.to_owned()), ..ObjectMeta::default() };
        let role = ClusterRole { metadata, ..ClusterRole::default() };
        let dry = PostParams { dry_run: true, ..creating() };
        self.hub.read(self.roles.create(&dry, &role)).await.map(drop)
    }
}

// === impl Verdict ===

impl Verdict {
    /// Why no cluster is accepted because of `policy`, if so.
    pub fn objection(&self, policy: Policy) -> Option<String> {
        let name = policy.name();
        match self {
            Self::InForce => None,
            Self::NotInForce => Some(format!(
                "the admission policy {name} is not in force, so {}: install the chart with \
                 controllers.ocmRegistration.enabled",
                policy.without()
            )),
            Self::Unknown(why) => {
                Some(format!("cannot find out whether the admission policy {name} is in force: {why}"))
            }
        }
    }
}

/// The answer of a hub on which all policies are in force, if a request is a probe.
#[cfg(test)]
pub fn refused_probe(head: &http::request::Parts, body: &serde_json::Value) -> Option<(u16, serde_json::Value)> {
    let is_dry = head.uri.query().is_some_and(|query| query.contains("dryRun=All"));
    let policy = match body["metadata"]["annotations"][PROBE_ANNOTATION].as_str() {
        Some("") => Policy::Clusters,
        Some(_) => Policy::Bindings,
        None => Policy::Limits,
    };
    is_dry.then(|| crate::scripted::status(403, "Forbidden", policy.proof()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::sleep;

    use super::*;
    use crate::parts::hub_calls::managed_clusters;
    use crate::scripted;

    /// A hub that counts what it is asked, and has no cluster `gone`. Another one is full.
    fn hub(asked: &Arc<AtomicUsize>) -> LeaderClient {
        let asked = Arc::clone(asked);
        LeaderClient::scripted(move |head, body| {
            asked.fetch_add(1, Ordering::Relaxed);
            if head.uri.path().ends_with("/gone") {
                return Some(scripted::status(404, "NotFound", "there is none"));
            }
            if head.uri.path().ends_with("/full") {
                return Some(scripted::status(422, "Invalid", "metadata.annotations: Too long"));
            }
            refused_probe(head, &body)
        })
    }

    fn admission(hub: LeaderClient) -> Admission {
        let clusters = Api::all_with(hub.client.clone(), &managed_clusters());
        Admission::new(hub, clusters)
    }

    /// To sixteen clusters at once.
    async fn objections(admission: &Admission) -> Vec<Option<String>> {
        let all = (0..16).map(|number| format!("c{number}"));
        join_all(all.map(async |name| admission.objection(&name).await)).await
    }

    #[tokio::test(start_paused = true)]
    async fn one_probe_does_for_all_clusters_that_are_accepted_at_once() {
        let asked = Arc::default();
        let admission = admission(hub(&asked));
        assert_eq!(objections(&admission).await, vec![None; 16]);
        assert_eq!(asked.load(Ordering::Relaxed), Policy::ALL.len());
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_for_a_slow_probe_share_the_next() {
        let asked = Arc::default();
        let admission = admission(hub(&asked).delayed(FRESH));
        let later = async {
            sleep(Duration::from_millis(1)).await;
            objections(&admission).await
        };
        let (first, others) = tokio::join!(admission.objection("first"), later);
        assert_eq!((first, others), (None, vec![None; 16]));
        assert_eq!(asked.load(Ordering::Relaxed), 2 * Policy::ALL.len());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_more_than_two_probes_of_others() {
        let admission = admission(hub(&Arc::default()).delayed(FRESH));
        let begin = Instant::now();
        let later = async {
            sleep(Duration::from_millis(1)).await;
            join_all((0..16).map(async |_| admission.objection("gone").await)).await
        };
        let (first, others) = tokio::join!(admission.objection("gone"), later);
        assert!(first.is_some() && others.iter().all(Option::is_some), "it is not there");
        assert!(begin.elapsed() < 4 * FRESH, "two of others, and its own");
    }

    /// Every user who may write a cluster may fill its annotations.
    #[tokio::test]
    async fn clusters_that_cannot_be_changed_do_not_make_policies_look_out_of_force() {
        let asked = Arc::default();
        let admission = admission(hub(&asked));
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let in_force = |told: &[(Policy, Verdict)]| told.iter().all(|(_, verdict)| *verdict == Verdict::InForce);
        let told = admission.ask_any(names(&["full", "gone", "c1", "c2"])).await;
        assert!(told.len() == Policy::ALL.len() && in_force(&told), "{told:?}");
        assert_eq!(asked.load(Ordering::Relaxed), TRIES * Policy::ALL.len());
        assert!(!in_force(&admission.ask_any(names(&["full"])).await));
        assert_eq!(admission.ask_any(Vec::new()).await, [(Policy::Limits, Verdict::InForce)]);
    }

    #[tokio::test]
    async fn what_a_probe_of_one_cluster_finds_amiss_refuses_no_other() {
        let admission = admission(hub(&Arc::default()));
        let (gone, other) = tokio::join!(admission.objection("gone"), admission.objection("c1"));
        assert!(gone.is_some_and(|why| why.contains("cannot find out")), "it is not there");
        assert_eq!(other, None);
    }
}
