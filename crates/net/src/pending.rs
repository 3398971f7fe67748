//! Limits connections whose peer has not authenticated yet. Any client can open them, so they have
//! few permits, and keep none for long: for a new one, the oldest of the network with the most
//! gives way.
//!
//! If new connections waited in the kernel's queue instead, a client that opens connections and
//! sends nothing would keep all others out: the queue is served in order, and each silent
//! connection blocks it for as long as a handshake may take. To refuse new ones would have the same
//! effect.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The permits of one listener. Cheap to clone; clones share the permits.
#[derive(Debug, Clone)]
pub struct Pending(Arc<Shared>);

/// All connections of a public listener, including the unauthenticated ones, up to a limit. Cheap
/// to clone.
#[derive(Debug, Clone)]
pub struct Connections {
    all: Arc<Semaphore>,
    pending: Pending,
}

#[derive(Debug)]
struct Shared {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    count: usize,
    /// In the order of arrival. Contains no network without connections.
    networks: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
}

/// One connection's permit, until it is dropped or given to another.
#[derive(Debug)]
pub struct PendingPermit {
    shared: Arc<Shared>,
    network: IpAddr,
    id: u64,
    given_away: CancellationToken,
}

// === impl Pending ===

impl Pending {
    /// Allows `most` connections in all, and `most_of_one` of one IPv4 address or IPv6 /64 network.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self(Arc::new(Shared { most, most_of_one, taken: Mutex::default() }))
    }

    /// A permit for a connection from `address`. There always is one, if necessary another
    /// connection's.
    pub fn enter(&self, address: IpAddr) -> PendingPermit {
        let (network, given_away) = (network(address), CancellationToken::new());
        let mut taken = self.0.taken.lock();
        let id = taken.add(network, given_away.clone());
        let yields = if taken.networks[&network].len() > self.0.most_of_one {
            taken.take_oldest(network)
        } else if taken.count > self.0.most {
            taken.fullest().and_then(|fullest| taken.take_oldest(fullest))
        } else {
            None
        };
        drop(taken);
        // Wakes a task, so not under the lock.
        if let Some(yields) = yields {
            yields.cancel();
        }
        PendingPermit { shared: Arc::clone(&self.0), network, id, given_away }
    }

    fn count(&self) -> usize {
        self.0.taken.lock().count
    }

    /// Makes the oldest connection of the network with the most give way. False if there is none.
    fn shed(&self) -> bool {
        let mut taken = self.0.taken.lock();
        let yields = taken.fullest().and_then(|fullest| taken.take_oldest(fullest));
        drop(taken);
        yields.inspect(CancellationToken::cancel).is_some()
    }
}

// === impl Connections ===

impl Connections {
    /// Room for `most` connections; `pending` limits the unauthenticated ones.
    pub fn new(most: usize, pending: Pending) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), pending }
    }

    /// Room for a connection from `address`, and its permit among the unauthenticated, to be held
    /// until it has authenticated. If all room is taken, an unauthenticated connection gives way.
    /// If there is none, the new connection waits.
    ///
    /// The holder of the permit must give up both as soon as it is [given
    /// away](PendingPermit::given_away).
    pub async fn enter(&self, address: IpAddr) -> (OwnedSemaphorePermit, PendingPermit) {
        self.enter_or(address, |_| false).await
    }

    /// The same as [`Connections::enter`]. If all room is taken, calls `end` first, with the number
    /// of unauthenticated connections: it may end an authenticated one, and returns whether it did.
    pub async fn enter_or(
        &self,
        address: IpAddr,
        end: impl FnOnce(usize) -> bool,
    ) -> (OwnedSemaphorePermit, PendingPermit) {
        let room = if let Ok(room) = Arc::clone(&self.all).try_acquire_owned() {
            room
        } else {
            if !end(self.pending.count()) {
                self.pending.shed();
            }
            Arc::clone(&self.all).acquire_owned().await.expect("never closed")
        };
        (room, self.pending.enter(address))
    }
}

// === impl Taken ===

impl Taken {
    fn add(&mut self, network: IpAddr, given_away: CancellationToken) -> u64 {
        let id = self.next;
        self.next += 1;
        self.count += 1;
        self.networks.entry(network).or_default().insert(id, given_away);
        id
    }

    fn take_oldest(&mut self, network: IpAddr) -> Option<CancellationToken> {
        let id = *self.networks.get(&network)?.first_key_value()?.0;
        self.remove(network, id)
    }

    fn remove(&mut self, network: IpAddr, id: u64) -> Option<CancellationToken> {
        let connections = self.networks.get_mut(&network)?;
        let removed = connections.remove(&id)?;
        if connections.is_empty() {
            self.networks.remove(&network);
        }
        self.count -= 1;
        Some(removed)
    }

    /// The network with the most connections; of several, the one with the oldest. Searches all,
    /// because they are few.
    fn fullest(&self) -> Option<IpAddr> {
        let oldest = |connections: &BTreeMap<u64, _>| Reverse(connections.first_key_value().map(|(id, _)| *id));
        let fullest = self.networks.iter().max_by_key(|(_, connections)| (connections.len(), oldest(connections)));
        fullest.map(|(network, _)| *network)
    }
}

// === impl PendingPermit ===

impl PendingPermit {
    /// Completes when another connection got the permit, so this one must be closed.
    pub async fn given_away(&self) {
        self.given_away.cancelled().await;
    }

    /// Cancelled when another connection gets the permit. For a holder that may return it
    /// meanwhile.
    pub fn token(&self) -> CancellationToken {
        self.given_away.clone()
    }
}

impl Drop for PendingPermit {
    fn drop(&mut self) {
        self.shared.taken.lock().remove(self.network, self.id);
    }
}

/// The network for which a connection from `address` counts: the whole /64 of an IPv6 address (RFC
/// 4291 §2.5.4).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn permits(pending: &Pending, addresses: &[&str]) -> Vec<PendingPermit> {
        addresses.iter().map(|address| pending.enter(address.parse().unwrap())).collect()
    }

    /// Indices of the `permits` that were given away.
    fn gone(permits: &[PendingPermit]) -> Vec<usize> {
        (0..permits.len()).filter(|number| permits[*number].given_away.is_cancelled()).collect()
    }

    #[test]
    fn who_has_the_most_gives_way_oldest_first() {
        let pending = Pending::new(5, 5);
        let permits =
            permits(&pending, &["10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]);
        // First the network with three. Then two have two, and of these the oldest arrived first.
        assert_eq!(gone(&permits), [0, 1]);
    }

    #[test]
    fn one_address_takes_its_own_places_only() {
        let pending = Pending::new(100, 2);
        let mut told = permits(&pending, &["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(gone(&told), [1, 2]);
        // A returned permit is free for the next connection.
        told.remove(3);
        told.extend(permits(&pending, &["10.0.0.2"]));
        assert_eq!(gone(&told), [1, 2]);
    }

    #[test]
    fn an_ipv6_network_and_a_mapped_address_are_one() {
        for (one, other, same) in [
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.2", false),
        ] {
            let permits = permits(&Pending::new(10, 1), &[one, other]);
            assert_eq!(!gone(&permits).is_empty(), same, "{one} {other}");
        }
    }

    #[tokio::test]
    async fn when_all_room_is_taken_the_silent_give_way_and_nobody_else() {
        let room = Connections::new(2, Pending::new(usize::MAX, usize::MAX));
        let (one, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let (shown, permit) = room.enter(one).await;
        drop(permit);
        let (silent, permit) = room.enter(one).await;
        let connection = tokio::spawn(async move {
            permit.given_away().await;
            drop((permit, silent));
        });
        let (_other, permit) = room.enter(other).await;
        connection.await.unwrap();
        drop(permit);
        // Two are authenticated, so a new connection waits for one of them.
        let mut entering = pin!(room.enter(one));
        assert!(futures_util::poll!(&mut entering).is_pending());
        drop(shown);
        drop(entering.await);
    }

    #[tokio::test]
    async fn whoever_comes_gets_the_room_of_one_that_others_end() {
        let room = Connections::new(2, Pending::new(usize::MAX, usize::MAX));
        let address = "10.0.0.1".parse().unwrap();
        let (shown, permit) = room.enter(address).await;
        drop(permit);
        let (_silent, pending) = room.enter(address).await;
        let mut shown = Some(shown);
        let end = |silent| {
            assert_eq!(silent, 1);
            shown.take().is_some()
        };
        drop(room.enter_or(address, end).await);
        assert!(!pending.given_away.is_cancelled(), "the one that may say who it is in a moment");
    }

    #[test]
    fn nothing_is_left_of_those_that_went() {
        let pending = Pending::new(3, 2);
        drop(permits(&pending, &["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]));
        let taken = pending.0.taken.lock();
        assert_eq!((taken.count, taken.networks.len()), (0, 0));
    }
}
