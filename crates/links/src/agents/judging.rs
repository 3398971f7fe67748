//! Room for registrations being judged, shared out by address: a slow hub holds each of them up,
//! and a client with invented tokens would take all room meanwhile.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use net::pending::network;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room of one listener.
pub struct Judging {
    all: Arc<Semaphore>,
    most_of_one: usize,
    /// Of those addresses that have a registration here, or one that waits, and how many.
    shares: Mutex<HashMap<IpAddr, (Arc<Semaphore>, usize)>>,
}

/// Room for one registration, until dropped.
pub struct JudgingPermit<'a> {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _share: Share<'a>,
}

/// Keeps an address known.
struct Share<'a> {
    judging: &'a Judging,
    network: IpAddr,
}

// === impl Judging ===

impl Judging {
    /// For `most` registrations, `most_of_one` of them of one IPv4 address or IPv6 /64 network.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), most_of_one, shares: Mutex::default() }
    }

    /// Room for a registration from `address`. Waits for others of that address first, so that
    /// these keep no other address waiting.
    pub async fn enter(&self, address: IpAddr) -> JudgingPermit<'_> {
        let (share, own) = self.share(network(address));
        let own = own.acquire_owned().await.expect("never closed");
        let all = Arc::clone(&self.all).acquire_owned().await.expect("never closed");
        JudgingPermit { _all: all, _own: own, _share: share }
    }

    fn share(&self, network: IpAddr) -> (Share<'_>, Arc<Semaphore>) {
        let mut shares = self.shares.lock();
        let (own, count) = shares.entry(network).or_insert_with(|| (Arc::new(Semaphore::new(self.most_of_one)), 0));
        *count += 1;
        (Share { judging: self, network }, Arc::clone(own))
    }
}

// === impl Share ===

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut shares = self.judging.shares.lock();
        if let Some((_, count)) = shares.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                shares.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_address_has_its_share_and_those_who_are_gone_are_forgotten() {
        let judging = Judging::new(3, 2);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse::<IpAddr>().unwrap());
        let enter = |address| judging.enter(address).now_or_never();
        let mut open = vec![enter(one).expect("room"), enter(one).expect("room")];
        let mut waiting = Box::pin(judging.enter(one));
        assert!(waiting.as_mut().now_or_never().is_none(), "beyond its share");
        open.push(enter(other).expect("another's share"));
        assert!(enter(other).is_none(), "all room is taken");
        open.remove(0);
        open.push(waiting.now_or_never().expect("room again"));
        drop(open);
        assert!(judging.shares.lock().is_empty());
    }
}
