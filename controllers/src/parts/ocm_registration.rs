//! Registers clusters in place of Open Cluster Management's hub controllers, by their rules.
//!
//! `register::csr` and `register::ocm` decide; this part connects them with the hub. While
//! upstream's controllers run, this part does nothing.

mod admission;
mod beats;
mod clusters;
mod corrections;
mod lease;
mod mirror;
mod renewal;
mod requests;
mod rights;
mod sets;
mod settled;
mod unseen;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use register::csr::SIGNER;
use register::ocm;
use telemetry::readiness::NotReady;
use tokio::time::{Instant, sleep};

use self::admission::{Admission, Policy, Verdict};
use self::beats::Beats;
use self::clusters::Clusters;
use self::mirror::{Mirror, Writers};
use self::requests::Requests;
use self::rights::Rights;
use self::sets::Sets;
use self::settled::Settled;
use self::unseen::Unseen;
use super::hub_calls::LeaderClient;
use super::rivals::{Place, Rival, Rivals, Sought, Workload};
use super::{Context, hub_calls, rivals, worker};
use crate::args::{Config, PartName, SourceName};
use crate::calls::paged;
use crate::feed::follow;
use crate::together;
use crate::wakes::Wakes;

/// Condition in `/readyz`: upstream's controllers run.
pub const RIVAL: &str = "ocm-rival";
/// Conditions in `/readyz`: an admission policy is not in force.
pub const ADMISSION: [&str; 3] =
    [Policy::Clusters.condition(), Policy::Bindings.condition(), Policy::Limits.condition()];
/// Interval of checks of the admission policies.
const LOOKS: Duration = Duration::from_secs(10);

/// The stores that watches fill, and the queues.
struct Shared {
    /// Their contents are packed.
    clusters: Store<DynamicObject>,
    cluster_resource: ApiResource,
    requests: Store<DynamicObject>,
    request_resource: ApiResource,
    rights: Arc<Rights>,
    beats: Arc<Beats>,
    admission: Arc<Admission>,
    sets: Sets,
    /// Queues of clusters, of clusters that are gone but have left objects, and of requests.
    wakes: Wakes,
    leftovers: Wakes,
    asked: Wakes,
}

/// The writers of the stores.
struct Sources {
    clusters: Writer<DynamicObject>,
    requests: Writer<DynamicObject>,
    mirror: Writers,
    sets: sets::Writers,
}

/// Upstream's registration controllers.
const THEIRS: Rival = Rival {
    lease: ocm::rival::LEASE,
    deployment: Some(Workload { namespace: ocm::rival::HUB_NAMESPACE, name: ocm::rival::DEPLOYMENT }),
    place: Place::Usual(ocm::rival::may_be_theirs),
    reason: RIVAL,
};

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let report = |rivals: &Rivals| report(&context, rivals);
    let sought = Sought { rival: &THEIRS, namespaces: &context.config.rival_namespaces };
    rivals::while_alone(&context.hub, sought, (&context.readiness, &context.term), report, |_| work(&context)).await;
}

fn report(context: &Context<'_>, rivals: &Rivals) {
    if *rivals == Rivals::None {
        context.metrics.joining.begin();
        tracing::info!("ocm-registration stands in for Open Cluster Management's registration controllers");
        return;
    }
    context.metrics.joining.keep_out();
    if let Rivals::Alive { namespace, holder } = rivals {
        tracing::warn!(
            holder = format!("{namespace}/{holder}"),
            "Open Cluster Management's own registration controllers run: ocm-registration does nothing until their \
             Lease {} ends and their Deployment {} has no pods; stop them, or disable this part",
            ocm::rival::LEASE,
            ocm::rival::DEPLOYMENT
        );
    }
}

/// Runs the part. Never ends.
async fn work(context: &Context<'_>) {
    let hub = LeaderClient::of(context);
    let (shared, sources) = Shared::new(&hub, context.config);
    let clusters = Arc::new(shared.cluster_worker(context, &hub));
    let requests = Arc::new(shared.request_worker(context, &hub));
    let queues = async {
        // Before these lists, existing objects would be written again.
        shared.rights.mirror.listed().await;
        follow::stored(&shared.clusters).await;
        shared.beats.listed().await;
        let work = (shared.wakes.clone(), shared.clusters.clone(), shared.cluster_resource.clone());
        let judgements = (shared.asked.clone(), shared.requests.clone(), shared.request_resource.clone());
        together::all([
            worker::run(Arc::clone(&clusters), work.0, work.1, work.2).boxed(),
            worker::run(Arc::clone(&requests), judgements.0, judgements.1, judgements.2).boxed(),
            watches::clear_leftovers(&shared).boxed(),
            shared.beats.keep_time(&shared.wakes).boxed(),
            keep_asking(context, &shared).boxed(),
        ])
        .await;
    };
    let watches = watches::follow(&shared, sources, &clusters, &requests.settled, hub.client.clone());
    together::all([watches.boxed(), queues.boxed()]).await;
}

/// Probes the admission policies with any `ManagedCluster`, for `/readyz` and metrics. Wakes all
/// clusters when the policies are in force again, because those that were not accepted would wait
/// for a back-off of minutes. Never ends.
async fn keep_asking(context: &Context<'_>, shared: &Shared) {
    let mut not_ready: Vec<(Policy, NotReady)> = Vec::new();
    loop {
        let was_ready = not_ready.is_empty();
        for (policy, verdict) in shared.admission.ask_any(shared.names()).await {
            context.metrics.joining.admission(policy.name(), verdict == Verdict::InForce);
            let is_told = not_ready.iter().any(|(told, _)| *told == policy);
            match verdict.objection(policy) {
                None => not_ready.retain(|(told, _)| *told != policy),
                Some(objection) if !is_told => {
                    tracing::error!(policy = policy.name(), objection, "no cluster is accepted");
                    not_ready.push((policy, context.readiness.block(policy.condition())));
                }
                Some(_) => {}
            }
        }
        if !was_ready && not_ready.is_empty() {
            shared.wake_all();
        }
        sleep(LOOKS).await;
    }
}

// === impl Shared ===

impl Shared {
    fn wake_all(&self) {
        self.clusters.state().iter().for_each(|cluster| self.wakes.push("", &cluster.name_any()));
    }

    /// The names of some clusters: first of accepted ones with a Lease, because a user who may
    /// create one cluster may create many.
    fn names(&self) -> Vec<String> {
        let any = self.clusters.find(|cluster| cluster.metadata.name.is_some());
        let mut names = self.beats.some(admission::TRIES);
        names.extend(any.map(|cluster| cluster.name_any()));
        names
    }

    fn new(hub: &LeaderClient, config: &Config) -> (Self, Sources) {
        let cluster_resource = hub_calls::managed_clusters();
        let request_resource =
            hub_calls::resource("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests");
        let [clusters, requests] = [&cluster_resource, &request_resource].map(|resource| Writer::new(resource.clone()));
        let (mirror, writers) = Mirror::new(hub.client.clone());
        let own_namespace = config.secret_namespace.clone();
        let filled = config.sources.contains(&SourceName::Ocm).then(|| config.ocm_credential.clone());
        let api = Api::all_with(hub.client.clone(), &cluster_resource);
        let (sets, set_writers) = Sets::new(hub.clone(), clusters.as_reader());
        let shared = Self {
            clusters: clusters.as_reader(),
            requests: requests.as_reader(),
            rights: Arc::new(Rights { hub: hub.clone(), mirror, unseen: Unseen::default(), own_namespace, filled }),
            beats: Arc::default(),
            admission: Arc::new(Admission::new(hub.clone(), api)),
            sets,
            wakes: Wakes::default(),
            leftovers: Wakes::default(),
            asked: Wakes::default(),
            cluster_resource,
            request_resource,
        };
        (shared, Sources { clusters, requests, mirror: writers, sets: set_writers })
    }

    fn cluster_worker(&self, context: &Context<'_>, hub: &LeaderClient) -> Clusters {
        Clusters {
            hub: hub.clone(),
            api: Api::all_with(hub.client.clone(), &self.cluster_resource),
            rights: Arc::clone(&self.rights),
            beats: Arc::clone(&self.beats),
            admission: Arc::clone(&self.admission),
            metrics: context.metrics.joining.clone(),
            events: context.events.clone(),
            answers_count: context.config.parts.contains(&PartName::Availability),
            withdrawn: context.withdrawn.clone(),
            tries: worker::Tries::default(),
        }
    }

    fn request_worker(&self, context: &Context<'_>, hub: &LeaderClient) -> Requests {
        Requests {
            hub: hub.clone(),
            all: Api::all_with(hub.client.clone(), &self.request_resource),
            api: Api::all(hub.client.clone()),
            clusters: Api::all_with(hub.client.clone(), &self.cluster_resource),
            rights: Arc::clone(&self.rights),
            secrets: Api::namespaced(hub.client.clone(), &self.rights.own_namespace),
            admission: Arc::clone(&self.admission),
            trusted: context.config.ocm_auto_approve_users.clone(),
            events: context.events.clone(),
            metrics: context.metrics.joining.clone(),
            approvals: parking_lot::Mutex::default(),
            started: Instant::now(),
            settled: Settled::default(),
            tries: worker::Tries::default(),
        }
    }
}

/// Requests that may be an agent's. Those of add-ons have the label too, and are not ours to judge.
fn request_selection() -> watcher::Config {
    let labels = format!("{},!open-cluster-management.io/addon-name", register::csr::CLUSTER_LABEL);
    paged().fields(&format!("spec.signerName={SIGNER}")).labels(&labels)
}

#[cfg(test)]
mod tests;
