//! Whether the admission policies are in force. Without them, whoever may update a
//! `ManagedCluster` accepts it: nobody is accepted then.
//!
//! The hub is asked, not its objects: a policy that is there need not be enforced (a missing
//! binding, a disabled plugin). A change with a certain annotation is refused by the very
//! expression that guards acceptance, to anybody; so a dry run of one tells. It needs no right but
//! the `patch` of `ManagedClusters`, which this part has.

use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::hub::{CallError, Hub};
use crate::calls::merging;

/// Refused by `charts/cluster-gateway/templates/controllers-admission.yaml`.
const PROBE_ANNOTATION: &str = "cluster.core.oam.dev/admission-probe";
/// What the refusal says.
const PROOF: &str = "cluster-gateway admission is in force";
/// How long an answer counts: many clusters may be accepted at once.
const FRESH: Duration = Duration::from_secs(2);

/// What the hub says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    InForce,
    NotInForce,
    /// It could not be asked.
    Unknown(String),
}

pub struct Admission {
    hub: Hub,
    clusters: Api<DynamicObject>,
    last: Mutex<Option<Instant>>,
}

// === impl Admission ===

impl Admission {
    pub fn new(hub: Hub, clusters: Api<DynamicObject>) -> Self {
        Self { hub, clusters, last: Mutex::default() }
    }

    /// Asks, by the `ManagedCluster` `name`. Only a yes is remembered, for a moment.
    pub async fn ask(&self, name: &str) -> Verdict {
        if self.last.lock().is_some_and(|moment| moment.elapsed() < FRESH) {
            return Verdict::InForce;
        }
        let asked = Instant::now();
        let verdict = self.probe(name).await;
        *self.last.lock() = (verdict == Verdict::InForce).then_some(asked);
        verdict
    }

    async fn probe(&self, name: &str) -> Verdict {
        let change = json!({"metadata": {"annotations": {PROBE_ANNOTATION: ""}}});
        let dry = PatchParams { dry_run: true, ..merging() };
        match self.hub.read(self.clusters.patch(name, &dry, &Patch::Merge(&change))).await {
            Ok(_) => Verdict::NotInForce,
            Err(CallError::Hub(kube::Error::Api(status))) if status.message.contains(PROOF) => Verdict::InForce,
            Err(error) => Verdict::Unknown(error.to_string()),
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Why nobody is accepted, if nobody is.
    pub fn objection(&self) -> Option<String> {
        match self {
            Self::InForce => None,
            Self::NotInForce => Some(
                "the admission policies are not in force, so anybody who may update a ManagedCluster could accept it: \
                 install the chart with controllers.ocmRegistration.enabled"
                    .to_owned(),
            ),
            Self::Unknown(why) => Some(format!("cannot find out whether the admission policies are in force: {why}")),
        }
    }
}
