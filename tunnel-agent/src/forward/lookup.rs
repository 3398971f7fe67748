//! Looks up names of destinations.
//!
//! The resolver cannot be interrupted: a look-up continues on a thread of its own after its client
//! has given up. So its permit is returned only when the resolver returns. Slow names take permits
//! only from names of the same kind: neither from the API server's, nor from the agent's own
//! look-ups of its tunnel-servers.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tunnel::Destination;

use crate::targets::Check;

/// Threads of the whole process for blocking work: look-ups of three kinds, and as many again for
/// the agent itself.
pub const THREADS: usize = 4 * MOST_OF_A_KIND;
/// Limit of concurrent look-ups of one kind. More wait, each as long as its dial may take.
const MOST_OF_A_KIND: usize = 32;

/// Permits for look-ups.
#[derive(Debug)]
pub struct Lookups {
    api_server: Arc<Semaphore>,
    named: Arc<Semaphore>,
    unnamed: Arc<Semaphore>,
}

// === impl Lookups ===

impl Lookups {
    /// The addresses of `destination` now, in the resolver's order: all that it returns, of which
    /// the dialer uses some.
    pub async fn resolve(&self, check: Check, destination: &Destination) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = (destination.host().to_owned(), destination.port());
        self.run(check, move || Ok((host, port).to_socket_addrs()?.collect())).await
    }

    async fn run<T: Send + 'static>(
        &self,
        check: Check,
        look_up: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let kind = match check {
            Check::Any => &self.api_server,
            Check::Named => &self.named,
            Check::Unnamed => &self.unnamed,
        };
        let permit = Arc::clone(kind).acquire_owned().await.map_err(io::Error::other)?;
        let looking = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            look_up()
        });
        looking.await.map_err(io::Error::other)?
    }
}

impl Default for Lookups {
    fn default() -> Self {
        let kind = || Arc::new(Semaphore::new(MOST_OF_A_KIND));
        Self { api_server: kind(), named: kind(), unnamed: kind() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_look_up_given_up_keeps_its_place_until_the_resolver_returns() {
        let lookups = Lookups::default();
        let (resolver, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(parking_lot::Mutex::new(hangs));
        for _ in 0..MOST_OF_A_KIND {
            let hangs = Arc::clone(&hangs);
            let given_up = lookups.run(Check::Unnamed, move || Ok(hangs.lock().recv())).now_or_never();
            assert!(given_up.is_none(), "it hangs");
        }
        assert!(lookups.run(Check::Unnamed, || Ok(())).now_or_never().is_none());
        assert_eq!(lookups.unnamed.available_permits(), 0, "each is still at it");
        for check in [Check::Any, Check::Named] {
            kit::wait::within(kit::wait::WAIT, "another kind's", lookups.run(check, || Ok(()))).await.unwrap();
        }
        drop(resolver);
        kit::wait::within(kit::wait::WAIT, "a place", lookups.run(Check::Unnamed, || Ok(()))).await.unwrap();
    }
}
