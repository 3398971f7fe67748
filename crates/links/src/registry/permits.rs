//! Limits links per agent, per cluster, and in total. A link gets its permit before the agent gets
//! its response, so that agents that register at once cannot exceed the limits together.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use net::permit::Permit;
use net::shares::{Share, Shares};
use tunnel::ClusterName;
use tunnel::register::Registration;

use super::Registry;
use super::named::Credential;

#[derive(Debug, Default)]
pub(super) struct Permits {
    all: Arc<AtomicUsize>,
    clusters: Shares<ClusterName>,
    agents: Shares<(ClusterName, Arc<str>)>,
}

/// Permit of one link, released when dropped.
#[derive(Debug)]
pub struct LinkPermit {
    _all: Permit<AtomicUsize>,
    _of_cluster: Share<ClusterName>,
    _of_agent: Share<(ClusterName, Arc<str>)>,
}

/// No permit is free. Answer 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("this agent has {0} links here, which is the limit of one agent: start it with fewer --links")]
    Agent(usize),
    #[error(
        "the cluster has {0} links here, which is the limit of one cluster: run fewer agents or start them with fewer --links"
    )]
    Cluster(usize),
    #[error("this tunnel-server has {0} links, which is its limit: add servers")]
    All(usize),
}

// === impl Registry ===

impl Registry {
    /// Takes a permit for the link that registers, if one is free.
    pub fn reserve(&self, registration: &Registration, credential: &Credential) -> Result<LinkPermit, Full> {
        // A link that replaces another one is admitted while the old one still finishes its
        // streams.
        let spare = usize::from(self.replaces(registration, credential));
        let (limits, permits, cluster) = (&self.0.limits, &self.0.permits, &registration.cluster);
        let agent = (cluster.clone(), registration.agent.as_str().into());
        let of_agent = permits.agents.enter(agent, limits.links_per_agent + spare);
        let of_agent = of_agent.ok_or(Full::Agent(limits.links_per_agent))?;
        let of_cluster = permits.clusters.enter(cluster.clone(), limits.links_per_cluster + spare);
        let of_cluster = of_cluster.ok_or(Full::Cluster(limits.links_per_cluster))?;
        let all = Permit::of(&permits.all, limits.links + spare).ok_or(Full::All(limits.links))?;
        Ok(LinkPermit { _all: all, _of_cluster: of_cluster, _of_agent: of_agent })
    }
}
