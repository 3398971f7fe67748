//! Room for registrations being judged, shared out by address and by credential: a slow hub holds
//! each of them up, and a client with invented tokens would take all room meanwhile, as would one
//! with a valid token that asks for cluster after cluster from many addresses.

use std::net::IpAddr;
use std::sync::Arc;

use net::pending::network;
use net::shares::{QueuePermit, Queues};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits of one listener.
pub struct Judging {
    all: Arc<Semaphore>,
    owners: Queues<Owner>,
}

/// Whose share it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Network(IpAddr),
    /// A hash, under a key of this process.
    Credential(u64),
}

/// Permit to judge one registration, released when dropped.
pub struct JudgingPermit<'a> {
    _all: OwnedSemaphorePermit,
    _of_network: QueuePermit<'a, Owner>,
    _of_credential: Option<QueuePermit<'a, Owner>>,
}

// === impl Judging ===

impl Judging {
    /// For `most` registrations, `most_of_one` of them of one IPv4 address or IPv6 /64 network, and
    /// as many with one credential.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), owners: Queues::new(most_of_one) }
    }

    /// Room for a registration from `address` with `credential`, as a hash. Waits first for others
    /// with that credential, and then for others of that address, so that no other agent waits for
    /// these.
    pub async fn enter(&self, address: IpAddr, credential: Option<u64>) -> JudgingPermit<'_> {
        let of_credential = match credential {
            Some(credential) => Some(self.owners.enter(Owner::Credential(credential)).await),
            None => None,
        };
        let of_network = self.owners.enter(Owner::Network(network(address))).await;
        let all = Arc::clone(&self.all).acquire_owned().await.expect("never closed");
        JudgingPermit { _all: all, _of_network: of_network, _of_credential: of_credential }
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
        let enter = |address| judging.enter(address, None).now_or_never();
        let mut open = vec![enter(one).expect("room"), enter(one).expect("room")];
        let mut waiting = Box::pin(judging.enter(one, None));
        assert!(waiting.as_mut().now_or_never().is_none(), "beyond its share");
        open.push(enter(other).expect("another's share"));
        assert!(enter(other).is_none(), "all room is taken");
        open.remove(0);
        open.push(waiting.now_or_never().expect("room again"));
        drop(open);
        assert_eq!(judging.owners.keys(), 0);
    }

    #[tokio::test]
    async fn one_credential_has_its_share_from_whatever_address() {
        let judging = Judging::new(4, 2);
        let enter = |last: u8, credential| judging.enter([10, 0, 0, last].into(), Some(credential)).now_or_never();
        let open = [enter(1, 7).expect("room"), enter(2, 7).expect("room")];
        let mut waiting = Box::pin(judging.enter([10, 0, 0, 3].into(), Some(7)));
        assert!(waiting.as_mut().now_or_never().is_none(), "beyond its share");
        let others =
            [enter(3, 8).expect("another's share"), enter(3, 9).expect("who waits holds nothing of the address")];
        drop((open, others));
        drop(waiting.now_or_never().expect("room again"));
        assert_eq!(judging.owners.keys(), 0);
    }
}
