//! Parts: what is done for clusters beside registering them. Each runs while this replica leads,
//! and writes only then.

mod argocd;
mod availability;
mod cluster_profiles;
mod gateway;
mod hub;
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
use futures_util::future::{FutureExt as _, join_all};
use kube::Client;
use telemetry::readiness::Readiness;

use crate::args::{Config, PartName};
use crate::events::Events;
use crate::explained::Explained;
use crate::metrics::Metrics;
use crate::term::MayWrite;

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
    pub may_write: MayWrite,
}

/// Runs all parts that are enabled. Never ends, unless none is.
pub async fn run(context: Context<'_>) {
    let parts = context.config.parts.iter().map(|part| {
        let context = context.clone();
        match part {
            PartName::Clusterprofile => cluster_profiles::run(context).boxed(),
            PartName::ManagedServiceaccount => managed_service_accounts::run(context).boxed(),
            PartName::Manifestworks => manifestworks::run(context).boxed(),
            PartName::OcmRegistration => ocm_registration::run(context).boxed(),
            PartName::Placement => placement::run(context).boxed(),
            PartName::ReplicaSets => replica_sets::run(context).boxed(),
            PartName::Argocd => argocd::run(context).boxed(),
            PartName::Availability => availability::run(context).boxed(),
        }
    });
    join_all(parts).await;
}
