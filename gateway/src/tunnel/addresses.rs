//! The addresses behind the tunnel-servers' name, looked up again while they are in use.
//!
//! Known addresses are used at once, however old. Old ones are looked up again in the background,
//! so that a slow name server delays no request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use net::dial::{DialError, resolve};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

/// Age after which a look-up is repeated: replicas come and go with deployments, and a headless
/// Service's records live for about this long.
const FRESH: Duration = Duration::from_secs(10);
/// Timeout of a look-up in the background.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most replicas that are used: more of them would need more links than they are worth.
const MOST: usize = 32;

pub struct Addresses {
    host: String,
    port: u16,
    known: Mutex<Option<ResolvedAddresses>>,
    looking: tokio::sync::Mutex<()>,
}

/// The result of one look-up.
#[derive(Debug, Clone)]
pub struct ResolvedAddresses {
    pub all: Arc<[SocketAddr]>,
    at: Instant,
}

// === impl Addresses ===

impl Addresses {
    /// `host` is a name, or an address, which needs no look-up.
    pub fn new(host: &str, port: u16) -> Arc<Self> {
        Arc::new(Self { host: host.to_owned(), port, known: Mutex::default(), looking: tokio::sync::Mutex::default() })
    }

    pub async fn get(self: &Arc<Self>, deadline: Instant) -> Result<ResolvedAddresses, DialError> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(ResolvedAddresses { all: [SocketAddr::new(address, self.port)].into(), at: Instant::now() });
        }
        let known = self.known.lock().clone();
        match known {
            Some(known) => {
                if !known.is_fresh() {
                    let addresses = Arc::clone(self);
                    tokio::spawn(async move { addresses.refresh_beside().await });
                }
                Ok(known)
            }
            None => self.refresh(deadline).await,
        }
    }

    /// Looks up again, unless another task did meanwhile.
    pub async fn refresh(&self, deadline: Instant) -> Result<ResolvedAddresses, DialError> {
        let timeout = || DialError::Timeout { address: format!("{}:{}", self.host, self.port) };
        let _looking = timeout_at(deadline, self.looking.lock()).await.map_err(|_| timeout())?;
        self.look_up(deadline).await
    }

    async fn refresh_beside(&self) {
        // One look-up at a time is enough.
        let Ok(_looking) = self.looking.try_lock() else { return };
        if let Err(error) = self.look_up(Instant::now() + PATIENCE).await {
            tracing::warn!(%error, "cannot resolve the tunnel-servers, keeping the known addresses");
        }
    }

    async fn look_up(&self, deadline: Instant) -> Result<ResolvedAddresses, DialError> {
        if let Some(known) = self.known.lock().clone().filter(ResolvedAddresses::is_fresh) {
            return Ok(known);
        }
        let mut all = resolve(&self.host, self.port, deadline).await?;
        all.sort_unstable();
        all.truncate(MOST);
        let known = ResolvedAddresses { all: all.into(), at: Instant::now() };
        *self.known.lock() = Some(known.clone());
        Ok(known)
    }
}

// === impl ResolvedAddresses ===

impl ResolvedAddresses {
    pub fn is_fresh(&self) -> bool {
        self.at.elapsed() < FRESH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test]
    async fn an_address_is_itself_and_a_name_is_looked_up() {
        for host in ["127.0.0.1", "::1"] {
            let known = Addresses::new(host, 8090).get(soon()).await.unwrap();
            assert_eq!(*known.all, [SocketAddr::new(host.parse().unwrap(), 8090)]);
        }
        let known = Addresses::new("localhost", 8090).get(soon()).await.unwrap();
        assert!(known.is_fresh() && known.all.iter().all(|address| address.ip().is_loopback()), "{known:?}");
        let error = Addresses::new("no-such-host.invalid", 8090).get(soon()).await.unwrap_err();
        assert!(error.to_string().contains("lookup no-such-host.invalid"), "{error}");
    }

    #[tokio::test]
    async fn old_addresses_are_used_while_they_are_looked_up_anew() {
        let addresses = Addresses::new("localhost", 8090);
        let old = ResolvedAddresses { all: ["192.0.2.1:8090".parse().unwrap()].into(), at: Instant::now() - FRESH };
        *addresses.known.lock() = Some(old.clone());
        assert_eq!(addresses.get(soon()).await.unwrap().all, old.all);
        let is_new = async || addresses.known.lock().clone().is_some_and(|known| known.all != old.all);
        kit::wait::becomes(Duration::from_secs(5), "the new addresses", is_new).await;
    }
}
