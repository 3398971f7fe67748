//! Lists links and streams for operators, and ends them by their identifiers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use tunnel::Gauge;

use super::Registry;
use super::registered::{Open, RegisteredLink};

/// One cluster with its agents, which are sorted by name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterListing {
    pub cluster: String,
    pub streams: usize,
    /// Streams being opened, among `streams`.
    pub dials: usize,
    pub agents: Vec<AgentListing>,
}

/// One agent process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentListing {
    pub agent: String,
    pub version: String,
    /// The credential that registered it.
    pub credential: String,
    pub links: Vec<LinkListing>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkListing {
    pub id: u64,
    /// The agent's own number of the link.
    pub number: u16,
    pub peer: String,
    /// Whether the link accepts new streams.
    pub usable: bool,
    pub age_seconds: u64,
    pub rtt_milliseconds: Option<f64>,
    /// Since the last byte from the agent.
    pub silence_seconds: f64,
    /// Streams open or being opened.
    pub stream_count: usize,
    pub streams: Vec<StreamListing>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamListing {
    pub id: u64,
    pub destination: String,
    pub age_seconds: u64,
    /// Bytes towards the destination.
    pub bytes_forth: u64,
    /// Bytes from the destination.
    pub bytes_back: u64,
    pub bytes_held: u64,
}

/// No link, agent or stream has this identifier, or it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such link, agent or stream")]
pub struct NotLinked;

// === impl Registry ===

impl Registry {
    /// Everything, sorted by cluster and agent.
    pub fn list(&self) -> Vec<ClusterListing> {
        let clusters = self.clusters().into_iter();
        clusters
            .map(|(name, cluster)| ClusterListing {
                cluster: name.to_string(),
                streams: cluster.counts.streams.load(Ordering::Relaxed),
                dials: cluster.counts.dials.load(Ordering::Relaxed),
                agents: agents(&cluster.links),
            })
            .collect()
    }

    /// Asks the agent to replace link `id`. Its streams continue.
    pub async fn drain_link(&self, id: u64) -> Result<(), NotLinked> {
        let held = self.held(|held| held.id == id).pop().ok_or(NotLinked)?;
        tracing::info!(link = %held.named, id, "asked to leave by an operator");
        held.link.leave().await;
        Ok(())
    }

    /// Ends link `id`; its streams are reset.
    pub fn close_link(&self, id: u64) -> Result<(), NotLinked> {
        let held = self.held(|held| held.id == id).pop().ok_or(NotLinked)?;
        tracing::info!(link = %held.named, id, "closed by an operator");
        held.link.close();
        Ok(())
    }

    /// Like [`Registry::drain_link`], for all links of an agent.
    pub async fn drain_agent(&self, agent: &str) -> Result<(), NotLinked> {
        let links = self.held(|held| *held.named.agent == *agent);
        if links.is_empty() {
            return Err(NotLinked);
        }
        tracing::info!(agent, links = links.len(), "asked to leave by an operator");
        futures_util::future::join_all(links.iter().map(|held| held.link.leave())).await;
        Ok(())
    }

    /// Like [`Registry::close_link`], for all links of an agent.
    pub fn close_agent(&self, agent: &str) -> Result<(), NotLinked> {
        let links = self.held(|held| *held.named.agent == *agent);
        if links.is_empty() {
            return Err(NotLinked);
        }
        tracing::info!(agent, links = links.len(), "closed by an operator");
        for held in links {
            held.link.close();
        }
        Ok(())
    }

    /// The gauge of stream `id`.
    pub fn stream(&self, id: u64) -> Result<Arc<Gauge>, NotLinked> {
        let links = self.held(|held| held.open.lock().contains_key(&id));
        links.first().and_then(|held| held.gauges().remove(&id)).map(|(_, gauge)| gauge).ok_or(NotLinked)
    }

    pub(super) fn held(&self, which: impl Fn(&RegisteredLink) -> bool) -> Vec<Arc<RegisteredLink>> {
        let clusters = self.clusters();
        clusters.iter().flat_map(|(_, cluster)| &*cluster.links).filter(|held| which(held)).cloned().collect()
    }
}

fn agents(links: &[Arc<RegisteredLink>]) -> Vec<AgentListing> {
    let mut agents: Vec<AgentListing> = Vec::new();
    for held in links {
        let (agent, credential) = (&*held.named.agent, &*held.named.credential.0);
        let known = agents.iter().position(|known| known.agent == agent && known.credential == credential);
        let index = known.unwrap_or_else(|| {
            agents.push(AgentListing {
                agent: agent.to_owned(),
                version: held.named.version.to_string(),
                credential: credential.to_owned(),
                links: Vec::new(),
            });
            agents.len() - 1
        });
        agents[index].links.push(link(held));
    }
    agents.sort_unstable_by(|a, b| (&a.agent, &a.credential).cmp(&(&b.agent, &b.credential)));
    agents
}

fn link(held: &RegisteredLink) -> LinkListing {
    LinkListing {
        id: held.id,
        number: held.named.number,
        peer: held.named.peer.to_string(),
        usable: held.link.is_usable(),
        age_seconds: held.since.elapsed().as_secs(),
        rtt_milliseconds: held.link.rtt().map(milliseconds),
        silence_seconds: held.link.silence().as_secs_f64(),
        stream_count: held.streams(),
        streams: held.gauges().into_iter().map(|(id, (open, gauge))| stream(id, &open, &gauge)).collect(),
    }
}

fn stream(id: u64, open: &Open, gauge: &Gauge) -> StreamListing {
    StreamListing {
        id,
        destination: open.to.to_string(),
        age_seconds: open.since.elapsed().as_secs(),
        bytes_forth: gauge.forth.load(Ordering::Relaxed),
        bytes_back: gauge.back.load(Ordering::Relaxed),
        bytes_held: gauge.held(),
    }
}

// === impl RegisteredLink ===

impl RegisteredLink {
    /// The open streams. Gauges must not be dropped under the lock, because the drop of the last
    /// one takes the same lock.
    fn gauges(&self) -> BTreeMap<u64, (Open, Arc<Gauge>)> {
        let open = self.open.lock();
        let gauges: Vec<_> = open.iter().map(|(id, open)| (*id, open.clone(), open.gauge.upgrade())).collect();
        drop(open);
        gauges.into_iter().filter_map(|(id, open, gauge)| Some((id, (open, gauge?)))).collect()
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
