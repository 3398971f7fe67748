//! One `--server`: resolves its name repeatedly, and runs a keeper for each address, which makes
//! links through it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use net::dial::resolve;
use net::random::fraction;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep};

use super::keeper::LinkKeeper;
use super::{Connector, Server};

/// How long a new address may stay unknown.
const INTERVAL: Duration = Duration::from_secs(30);
/// Minimum, for any number of requests by keepers.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(2);
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of the addresses of one name. Two servers are enough for availability; more spread load.
const MOST_ADDRESSES: usize = 16;

/// Keepers by address; none stands for the server's name, which a proxy resolves.
struct LinkKeepers {
    connector: Arc<Connector>,
    server: Arc<Server>,
    tasks: JoinSet<()>,
    known: HashMap<Option<SocketAddr>, KeeperHandle>,
}

struct KeeperHandle {
    /// Whether the name still resolves to the address.
    present: watch::Sender<bool>,
    task: Id,
}

/// Follows `server` until the drain, and then until its keepers have ended.
pub(super) async fn follow(connector: Arc<Connector>, server: Arc<Server>) {
    let drain = connector.drain.clone();
    let (host, port) = (server.name.host().to_owned(), server.name.port());
    let proxied = connector.outbound.is_proxied(&host, port);
    let literal = host.parse::<IpAddr>().ok().map(|address| SocketAddr::from((address, port)));
    let mut keepers =
        LinkKeepers { connector, server: Arc::clone(&server), tasks: JoinSet::new(), known: HashMap::new() };
    if proxied || literal.is_some() {
        keepers.update(&[if proxied { None } else { literal }]);
        drain.soft().await;
    } else {
        tokio::select! {
            biased;
            () = drain.soft() => {}
            () = keepers.resolve_again_and_again(&host, port) => {}
        }
    }
    while keepers.tasks.join_next().await.is_some() {}
}

// === impl LinkKeepers ===

impl LinkKeepers {
    async fn resolve_again_and_again(&mut self, host: &str, port: u16) {
        let mut complained = String::new();
        loop {
            match resolve(host, port, Instant::now() + LOOKUP_TIMEOUT).await {
                Ok(found) => {
                    complained.clear();
                    self.update(&self.choose(found));
                }
                // The known addresses stay in use: a resolver that is down must not cut links.
                Err(error) => {
                    let reason = error.to_string();
                    if reason != complained {
                        self.connector.metrics.not_registered("lookup");
                        tracing::warn!(server = %self.server.name, reason, "cannot resolve the tunnel-server's name");
                        complained = reason;
                    }
                }
            }
            sleep(SHORTEST_INTERVAL.mul_f64(1.0 + fraction() / 2.0)).await;
            tokio::select! {
                () = self.server.look_again.notified() => {}
                () = sleep(if self.known.is_empty() { SHORTEST_INTERVAL } else { INTERVAL }) => {}
            }
        }
    }

    /// The addresses to keep if there are too many: known ones first, so that nothing changes
    /// without need.
    fn choose(&self, mut found: Vec<SocketAddr>) -> Vec<Option<SocketAddr>> {
        found.sort_by_key(|address| (!self.known.contains_key(&Some(*address)), *address));
        found.truncate(MOST_ADDRESSES);
        found.into_iter().map(Some).collect()
    }

    fn update(&mut self, addresses: &[Option<SocketAddr>]) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
            self.known.retain(|_, known| known.task != id);
        }
        for (address, known) in &self.known {
            known.present.send_if_modified(|present| {
                std::mem::replace(present, addresses.contains(address)) != addresses.contains(address)
            });
        }
        for address in addresses {
            if self.known.contains_key(address) {
                continue;
            }
            let (present, presence) = watch::channel(true);
            let keeper = LinkKeeper::new(Arc::clone(&self.connector), Arc::clone(&self.server), *address, presence);
            let task = self.tasks.spawn(keeper.run()).id();
            self.known.insert(*address, KeeperHandle { present, task });
        }
    }
}

#[cfg(test)]
mod tests;
