//! Separate tunnel-servers: their addresses, and the order in which they are asked.
//!
//! The server that opened the cluster's last stream comes first, then the others in rotation.
//! Servers that could not be reached come last, and after them those that are ending.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use net::tls::client_files::{ClientFiles, ClientFilesError, FollowedClient};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use rustls_pki_types::ServerName;
use tokio::time::Instant;
use tunnel::Settings;

use super::addresses::{Addresses, ResolvedAddresses};
use super::attempts::{self, OpenRequest};
use super::error::{Missing, TunnelError};
use super::link::Linking;
use super::replica::Replica;
use super::stream::Tunnelled;
use crate::metrics::TunnelOpen;

/// Timeout of a new look-up when no server at the known addresses has the cluster.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// The addresses of the tunnel-servers.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// Names or addresses with ports. Each may stand for several servers, whose certificates must
    /// have the name.
    pub hosts: Vec<(String, u16)>,
    pub files: ClientFiles,
}

pub struct Remote {
    hosts: Vec<Host>,
    linking: Arc<Linking>,
    replicas: Mutex<HashMap<SocketAddr, Arc<Replica>>>,
    /// Where to begin when no server has opened a stream for a cluster yet, so that not all begin
    /// with the same one.
    turn: AtomicUsize,
    links: Gauge,
}

struct Host {
    addresses: Arc<Addresses>,
    name: ServerName<'static>,
}

/// Why no server can be dialled. Texts name the flag.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("--proxy-host: {0:?} is not a DNS name or IP address")]
    Host(String),
    #[error("--proxy-ca-cert, --proxy-cert, --proxy-key: {0}")]
    Files(#[from] ClientFilesError),
}

// === impl Remote ===

impl Remote {
    /// Reads the files once; [`Remote::follow`] continues. `timeout` is for one new link.
    pub fn new(
        config: &RemoteConfig,
        settings: &Settings,
        timeout: Duration,
        links: Gauge,
    ) -> Result<Self, RemoteError> {
        let host = |(host, port): &(String, u16)| {
            let name = ServerName::try_from(host.clone()).map_err(|_| RemoteError::Host(host.clone()))?;
            Ok(Host { addresses: Addresses::new(host, *port), name })
        };
        let hosts = config.hosts.iter().map(host).collect::<Result<_, RemoteError>>()?;
        let tls = FollowedClient::load(config.files.clone())?;
        let linking = Arc::new(Linking { tls, settings: settings.clone(), timeout });
        Ok(Self { hosts, linking, replicas: Mutex::default(), turn: AtomicUsize::default(), links })
    }

    /// Our certificate for the tunnel-servers, if any.
    pub fn certificate(&self) -> &Arc<FollowedClient> {
        &self.linking.tls
    }

    /// Re-reads the files forever. Calls `failed` when they cannot be used.
    pub fn follow(&self, failed: impl Fn() + Send + 'static) -> impl Future<Output = ()> + Send + 'static {
        Arc::clone(&self.linking.tls).follow(failed)
    }

    /// Opens the stream `wanted`. Returns it and the server that opened it. `missing` has the
    /// servers that were asked before; `attempt` records those that are asked now.
    pub async fn open(
        &self,
        wanted: OpenRequest<'_>,
        preferred: Option<SocketAddr>,
        mut missing: Missing,
        attempt: &mut TunnelOpen,
    ) -> Result<(Tunnelled, SocketAddr), TunnelError> {
        let deadline = wanted.deadline;
        let (mut asked, mut nowhere) = (Vec::new(), Vec::new());
        let mut stale = Vec::new();
        // Concurrently, so that a name that cannot be resolved does not delay the others.
        let found = join_all(self.hosts.iter().map(|host| host.addresses.get(deadline))).await;
        for (host, found) in self.hosts.iter().zip(found) {
            match found {
                Ok(known) => {
                    if !known.is_fresh() {
                        stale.push(host);
                    }
                    self.note(host, &known, &mut asked);
                }
                Err(error) => nowhere.push(error),
            }
        }
        // Before any answer: it also forgets those that have gone.
        let ending = if nowhere.is_empty() { self.ending(&asked) } else { Vec::new() };
        let soon = || deadline.min(Instant::now() + SECOND_LOOK);
        let order = self.in_order(&asked, preferred);
        if let Some(opened) = attempts::ask(wanted, order, &mut missing, attempt).await? {
            return Ok(opened);
        }
        // One that died without a word is not waited for as long as one that is known.
        let briefly = OpenRequest { deadline: soon(), ..wanted };
        if let Some(opened) = attempts::ask(briefly, ending, &mut missing, attempt).await? {
            return Ok(opened);
        }
        // The servers may have moved since the last look-up.
        let mut newer = Vec::new();
        let soon = soon();
        for host in stale {
            if let Ok(known) = host.addresses.refresh(soon).await {
                self.note(host, &known, &mut newer);
            }
        }
        newer.retain(|replica| !asked.iter().any(|other| other.address() == replica.address()));
        if let Some(opened) = attempts::ask(wanted, newer, &mut missing, attempt).await? {
            return Ok(opened);
        }
        for error in nowhere {
            missing.nowhere(error);
        }
        Err(missing.into())
    }

    /// The servers that are no longer `known`, but accept streams: a server that is ending loses
    /// its name some seconds before it asks agents to link elsewhere, and may be the only one with
    /// a cluster's links until then. Forgets servers that have gone; streams through them continue.
    fn ending(&self, known: &[Arc<Replica>]) -> Vec<Arc<Replica>> {
        let mut replicas = self.replicas.lock();
        if replicas.len() == known.len() {
            return Vec::new();
        }
        let is_known = |replica: &Replica| known.iter().any(|other| other.address() == replica.address());
        replicas.retain(|_, replica| is_known(replica) || replica.accepts_streams());
        replicas.values().filter(|replica| !is_known(replica)).cloned().collect()
    }

    /// Adds the servers at the known addresses, each once.
    fn note(&self, host: &Host, known: &ResolvedAddresses, into: &mut Vec<Arc<Replica>>) {
        let mut replicas = self.replicas.lock();
        for address in known.all.iter() {
            let replica = replicas.entry(*address).or_insert_with(|| {
                Replica::new(*address, host.name.clone(), Arc::clone(&self.linking), self.links.clone())
            });
            if !into.iter().any(|other| other.address() == *address) {
                into.push(Arc::clone(replica));
            }
        }
    }

    fn in_order(&self, all: &[Arc<Replica>], preferred: Option<SocketAddr>) -> Vec<Arc<Replica>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut order: Vec<_> = (0..all.len()).map(|offset| &all[first.wrapping_add(offset) % all.len()]).collect();
        let is_preferred = |replica: &Replica| Some(replica.address()) == preferred;
        order.sort_by_key(|replica| (replica.is_doubtful(), !is_preferred(replica)));
        order.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
