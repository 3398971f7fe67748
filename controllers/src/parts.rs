//! Parts: what is done for clusters beside registering them. Each writes only while this replica
//! leads. Some read before, so that they have seen everything when it is their turn.

mod argocd;
mod availability;
mod catch_up;
mod cluster_profiles;
mod gateway;
mod hub_calls;
mod managed_service_accounts;
mod manifestworks;
mod ocm_registration;
mod placement;
mod probe;
mod replica_sets;
mod rivals;
mod stand_in;
mod watched;
mod worker;

pub use self::argocd::UNLISTED as ARGOCD_UNLISTED;
pub use self::availability::RIVAL as AVAILABILITY_RIVAL;
pub use self::ocm_registration::{ADMISSION as OCM_ADMISSION, RIVAL as OCM_RIVAL};
pub use self::placement::{RIVAL as PLACEMENT_RIVAL, UNLISTED as PLACEMENT_UNLISTED};
pub use self::replica_sets::{RIVAL as REPLICA_SETS_RIVAL, UNLISTED as REPLICA_SETS_UNLISTED};

use fleet::Fleet;
use futures_util::FutureExt as _;
use kube::api::DynamicObject;
use kube::{Client, Resource as _};
use telemetry::readiness::Readiness;

use crate::args::{Config, PartName};
use crate::events::{Events, Reason};
use crate::explained::Explained;
use crate::metrics::Metrics;
use crate::raw::logged;
use crate::term::Term;
use crate::together;
use crate::wakes::Wakes;

/// What every part gets. Cheap to clone.
#[derive(Clone)]
pub struct Context<'a> {
    pub config: &'a Config,
    pub hub: Client,
    /// The members, through the gateway.
    pub members: Fleet,
    /// On the hub.
    pub events: Events,
    pub metrics: Metrics,
    pub readiness: Readiness,
    pub explained: Explained,
    pub term: Term,
    /// Clusters, as names, whose members answer after they did not: who rests because of that need
    /// not wait any longer.
    pub answered: Wakes,
    /// Clusters, as names, whose rights a refusal took: their Secrets need not wait for that any
    /// longer.
    pub withdrawn: Wakes,
}

/// Runs all parts that are enabled. Never ends, unless none is.
pub async fn run(context: Context<'_>) {
    let parts = context.config.parts.iter().map(|part| {
        let context = context.clone();
        match part {
            PartName::Manifestworks => manifestworks::run(context).boxed(),
            PartName::Placement => placement::run(context).boxed(),
            PartName::Clusterprofile => in_term(context, cluster_profiles::run).boxed(),
            PartName::ManagedServiceaccount => in_term(context, managed_service_accounts::run).boxed(),
            PartName::OcmRegistration => in_term(context, ocm_registration::run).boxed(),
            PartName::ReplicaSets => in_term(context, replica_sets::run).boxed(),
            PartName::Argocd => in_term(context, argocd::run).boxed(),
            PartName::Availability => in_term(context, availability::run).boxed(),
        }
    });
    together::all(parts).await;
}

/// A `ManagedCluster` is too large: only what administrators decide, and silence, still count.
fn tell_too_large(events: &Events, cluster: &DynamicObject, why: &str) {
    let name = cluster.metadata.name.as_deref();
    if let Some(suppressed) = logged::due("large ManagedCluster", None, name) {
        tracing::warn!(
            cluster = name,
            why,
            suppressed,
            "a ManagedCluster is too large: nothing new is granted, and decisions keep it as it was"
        );
    }
    let note = format!(
        "{why}. Until it is smaller, the controllers grant this cluster nothing new, and decisions keep it as it was; \
         taints, sets, a denial, silence and deletion still count: shorten its labels, annotations, \
         finalizers, owners, addresses, taints, claims or conditions"
    );
    let is_accepted = cluster.data["spec"]["hubAcceptsClient"] == true;
    events.publish_of(is_accepted, cluster.object_ref(&hub_calls::managed_clusters()), Reason::ClusterTooLarge, note);
}

/// One that reads nothing before it may write.
async fn in_term<'a, F: Future<Output = ()>>(context: Context<'a>, run: impl FnOnce(Context<'a>) -> F) {
    context.term.begins().await;
    run(context).await;
}
