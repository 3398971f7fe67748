//! Limits how many requests one cluster and one user may have in flight: a request beyond a limit
//! gets 429 before anything is sent. All ServiceAccounts of a namespace count as one user
//! ([`User::owner`]).
//!
//! A hub exempts proxied requests from its own fairness (`clustergateways/proxy` is long-running
//! there), so nothing else keeps one user, or one slow member, from taking the whole gateway. Long
//! requests, such as watches, have their own budgets: many of them cause little load, and must not
//! crowd out the others.

mod heavy;
mod loads;
pub mod reports;
mod too_many;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use api::access::Verb;
use api::cluster_name::ClusterName;
use auth::User;
use net::permit::Permit;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub use self::heavy::{HeavyPermit, HeavyPermits, TooManyHeavy};
pub use self::loads::Loads;
pub use self::too_many::{TooMany, Whose};
use crate::hub::{Cause, Collection, HubFailure, WatchPermit, Watches};

/// The group that is never limited, so that administrators can always make repairs.
const EXEMPT: &str = "system:masters";

/// The limits of requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    pub cluster: Budgets,
    pub user: Budgets,
}

/// Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    pub short: u32,
    pub long: u32,
}

/// How a request counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Short,
    /// A watch, a followed log, an upgrade.
    Long,
}

/// The requests in flight of one user or at one cluster. A cluster's load survives changes of its
/// Secret. It also survives a new registration while a request of the former one is open.
#[derive(Debug, Default)]
pub struct Load([AtomicUsize; 2]);

/// The limits, and the requests that count.
#[derive(Debug)]
pub struct Limits {
    caps: Caps,
    users: Loads,
    /// Requests for all clusters together.
    pub every: HeavyPermits,
    /// Writes of Clusters, before their bodies are read.
    pub writes: HeavyPermits,
    /// Permits for writes of Clusters, apart from those for reports of health.
    pub writers: reports::Permits,
    /// Permits for reports of health.
    pub reports: reports::Permits,
    /// Watches without a hub.
    watching: Watches,
    /// Ordered as [`REASONS`].
    rejected: [[Counter; 2]; 2],
    /// Ordered as [`OF_HUB`].
    of_hub: [Counter; 3],
}

/// One request's unit of a budget.
pub type LoadPermit = Permit<Load>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Most requests for all clusters together: each holds up to three times 64 MiB.
const MOST_OF_ALL: usize = 16;
const MOST_OF_ALL_PER_USER: usize = 2;
/// Most writes of Clusters, including those whose body is still arriving.
const WRITES: usize = 64;
const WRITES_PER_USER: usize = 2;

/// By cluster and user, then by kind.
const REASONS: [[&str; 2]; 2] = [["cluster", "cluster_long"], ["user", "user_long"]];
/// Reasons of [`HeavyPermits`]: the limit for all users, and the limit for one.
const OF_ALL_CLUSTERS: [&str; 2] = ["all_clusters", "all_clusters_user"];
const OF_WRITES: [&str; 2] = ["cluster_writes", "cluster_writes_user"];
/// Reasons of [`reports::Permits`].
const WRITES_BUSY: &str = "cluster_writes_busy";
const REPORTS_BUSY: &str = "health_reports";
/// Requests to the hub, watches there, and one user's watches.
const OF_HUB: [&str; 3] = ["hub_requests", "watches", "watches_user"];

// === impl Budgets ===

impl Budgets {
    /// `None` means no limit.
    fn of(self, kind: Kind) -> Option<u32> {
        let most = match kind {
            Kind::Short => self.short,
            Kind::Long => self.long,
        };
        (most > 0).then_some(most)
    }
}

/// The permits of one request in its user's and its cluster's budget.
pub type LoadPermits = [Option<LoadPermit>; 2];

// === impl Limits ===

impl Limits {
    /// Registers `cluster_gateway_requests_rejected_total{reason}`.
    pub fn new(caps: Caps, registry: &mut Registry) -> Self {
        let rejected = Family::<ReasonLabels, Counter>::default();
        registry.register(
            "cluster_gateway_requests_rejected",
            "Requests refused at a limit on requests in flight, by limit",
            rejected.clone(),
        );
        let counter = |reason| rejected.get_or_create_owned(&ReasonLabels { reason });
        let heavy = |what, most, of_user, reasons: [_; 2]| HeavyPermits::new(what, most, of_user, reasons.map(counter));
        let every = heavy("requests for all clusters", MOST_OF_ALL, MOST_OF_ALL_PER_USER, OF_ALL_CLUSTERS);
        let writes = heavy("writes of clusters", WRITES, WRITES_PER_USER, OF_WRITES);
        let writers = reports::Permits::new(counter(WRITES_BUSY));
        Self {
            caps,
            users: Loads::default(),
            every,
            writes,
            writers,
            reports: reports::Permits::new(counter(REPORTS_BUSY)),
            watching: Watches::default(),
            of_hub: OF_HUB.map(counter),
            rejected: REASONS.map(|reasons| reasons.map(counter)),
        }
    }

    /// A permit for a request of `user`; `None` if there is no limit.
    pub fn of_user(&self, user: &Arc<User>, kind: Kind) -> Result<Option<LoadPermit>, TooMany> {
        let Some(most) = self.caps.user.of(kind).filter(|_| !user.is_in(EXEMPT)) else { return Ok(None) };
        self.users.of(user.owner()).enter(kind, most).map(Some).ok_or_else(|| {
            self.rejected[1][kind as usize].inc();
            TooMany { whose: Whose::User(Arc::clone(user)), kind, most }
        })
    }

    /// A permit for a request to `cluster`, whose requests in flight are `load`.
    pub fn of_cluster(
        &self,
        cluster: &ClusterName,
        load: &Arc<Load>,
        user: &User,
        kind: Kind,
    ) -> Result<Option<LoadPermit>, TooMany> {
        let Some(most) = self.caps.cluster.of(kind).filter(|_| !user.is_in(EXEMPT)) else { return Ok(None) };
        Arc::clone(load).enter(kind, most).map(Some).ok_or_else(|| {
            self.rejected[0][kind as usize].inc();
            TooMany { whose: Whose::Cluster(cluster.clone()), kind, most }
        })
    }

    /// A permit for a watch without a hub, with the same limits as watches at a hub.
    pub fn watch(&self, user: &User) -> Result<WatchPermit, HubFailure> {
        self.watching.enter(Some(user.owner())).map_err(|full| {
            let failure = HubFailure { verb: Verb::Watch, collection: Collection::Secrets, cause: full.into() };
            self.count_of_hub()(&failure);
            failure
        })
    }

    /// Counts requests that are not sent to the hub, because too many are in flight there.
    pub fn count_of_hub(&self) -> impl Fn(&HubFailure) + Send + Sync + 'static {
        let [requests, watches, watches_of_user] = self.of_hub.clone();
        move |failure| match (&failure.cause, failure.verb) {
            (Cause::TooManyWatches { .. }, _) => {
                watches_of_user.inc();
            }
            (_, Verb::Watch) => {
                watches.inc();
            }
            _ => {
                requests.inc();
            }
        }
    }

    /// Permits of a request that its member continues after its caller has left: it causes the same
    /// load, and counts the same. It gives up its former permits now. Exceeds the limits if another
    /// request took them in between, because this one is in flight already.
    pub fn lingers(&self, user: &User, cluster: &Arc<Load>) -> LoadPermits {
        let of = |most: u32, load: &dyn Fn() -> Arc<Load>| {
            (most > 0 && !user.is_in(EXEMPT)).then(|| LoadPermit::beyond(load(), Load::count(Kind::Short)))
        };
        [
            of(self.caps.user.short, &|| self.users.of(user.owner())),
            of(self.caps.cluster.short, &|| Arc::clone(cluster)),
        ]
    }
}

// === impl Load ===

impl Load {
    fn count(kind: Kind) -> fn(&Self) -> &AtomicUsize {
        match kind {
            Kind::Short => |load| &load.0[0],
            Kind::Long => |load| &load.0[1],
        }
    }

    /// One more request, if fewer than `most` are in flight.
    fn enter(self: Arc<Self>, kind: Kind, most: u32) -> Option<LoadPermit> {
        Permit::within(self, Self::count(kind), most as usize)
    }
}

#[cfg(test)]
mod tests;
