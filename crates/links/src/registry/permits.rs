//! Limits links per agent, per cluster, and in total. A link gets its permit before the agent gets
//! its response, so that agents that register at once cannot exceed the limits together.

use std::collections::HashMap;
use std::sync::Arc;

use tunnel::ClusterName;
use tunnel::register::Registration;

use super::named::Credential;
use super::{Core, Registry};

#[derive(Debug, Default)]
pub(super) struct Permits {
    all: usize,
    clusters: HashMap<ClusterName, usize>,
    agents: HashMap<(ClusterName, Arc<str>), usize>,
}

/// Permit of one link, released when dropped.
#[derive(Debug)]
pub struct Permit {
    core: Arc<Core>,
    cluster: ClusterName,
    agent: Arc<str>,
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
    pub fn reserve(&self, registration: &Registration, credential: &Credential) -> Result<Permit, Full> {
        // A link that replaces another one is admitted while the old one still finishes its
        // streams.
        let spare = usize::from(self.replaces(registration, credential));
        let (limits, cluster) = (&self.0.limits, &registration.cluster);
        let agent: Arc<str> = registration.agent.as_str().into();
        let mut permits = self.0.permits.lock();
        let of_agent = (cluster.clone(), Arc::clone(&agent));
        if permits.agents.get(&of_agent).is_some_and(|count| *count >= limits.links_per_agent + spare) {
            return Err(Full::Agent(limits.links_per_agent));
        }
        if permits.clusters.get(cluster).is_some_and(|count| *count >= limits.links_per_cluster + spare) {
            return Err(Full::Cluster(limits.links_per_cluster));
        }
        if permits.all >= limits.links + spare {
            return Err(Full::All(limits.links));
        }
        permits.all += 1;
        *permits.clusters.entry(cluster.clone()).or_default() += 1;
        *permits.agents.entry(of_agent).or_default() += 1;
        Ok(Permit { core: Arc::clone(&self.0), cluster: cluster.clone(), agent })
    }
}

// === impl Permit ===

impl Drop for Permit {
    fn drop(&mut self) {
        let mut permits = self.core.permits.lock();
        permits.all -= 1;
        lower(&mut permits.clusters, &self.cluster);
        lower(&mut permits.agents, &(self.cluster.clone(), Arc::clone(&self.agent)));
    }
}

fn lower<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    let Some(count) = counts.get_mut(key) else { return };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}
