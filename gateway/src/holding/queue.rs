//! Pieces of bodies that wait in HTTP/2 to be sent: how many of one body may, and what h2 keeps of
//! them.
//!
//! h2 queues the pieces of all streams of a connection in one slab (`proto/streams/buffer.rs` of
//! 0.4.20), which never shrinks. So each connection counts the most that ever waited at once, until
//! it ends, and a body has at most [`MOST`]: all streams of a hub's connection together cannot make
//! it large.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use net::budget::FRAME;

use super::{Account, Tally};

/// Most pieces of one body that wait. Of 4 KiB each, they are as many bytes as may wait of a
/// response anyway. Meanwhile, shorter ones that arrive are joined ([`net::queue`]).
const MOST: usize = 64;
/// When so few are left, the next ones are sent.
const FEW: usize = MOST / 2;
/// Bytes of a slot of the slab: a frame, which has room for a head. Measured: 312.
const SLOT: usize = 320;
/// Slots for which a connection has room anyway.
const USUAL: usize = 64;

/// Pieces of one body that wait.
#[derive(Default)]
pub struct Pieces {
    waiting: AtomicUsize,
    /// The task that waits until there are few.
    task: AtomicWaker,
}

/// Pieces of all bodies that wait on one connection.
#[derive(Default)]
pub struct Slots {
    waiting: AtomicUsize,
    /// The most at once, as a power of two: the slab doubles.
    most: AtomicUsize,
}

/// A piece of a response, counted until it is dropped.
pub struct ResponsePiece {
    data: Bytes,
    /// The request's.
    tally: Tally,
}

/// The pieces of an upload that wait on a connection to a member.
pub struct Uploading {
    pieces: Pieces,
    /// The connection's.
    member: Account,
}

/// A piece of an upload, counted until it is dropped.
struct UploadPiece {
    data: Bytes,
    uploading: Arc<Uploading>,
    /// Counts the frame of a part, because the whole piece counts with one frame.
    _frame: Option<Tally>,
}

// === impl Pieces ===

impl Pieces {
    pub fn add(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// A piece was sent, or dropped.
    pub fn remove(&self) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) - 1 == FEW {
            self.task.wake();
        }
    }

    pub fn is_any(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Whether no more may wait. Then the task is woken when few are left.
    pub fn is_full(&self, cx: &Context<'_>) -> bool {
        if self.waiting.load(Ordering::Relaxed) < MOST {
            return false;
        }
        self.task.register(cx.waker());
        // Some may have left before the task was registered.
        self.waiting.load(Ordering::SeqCst) >= MOST
    }
}

// === impl Slots ===

impl Slots {
    pub fn add(&self) {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        if waiting > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(waiting.next_power_of_two(), Ordering::Relaxed);
        }
    }

    pub fn remove(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Bytes that h2 keeps for the connection's lifetime.
    pub fn bytes(&self) -> usize {
        self.most.load(Ordering::Relaxed).saturating_sub(USUAL) * SLOT
    }
}

// === impl ResponsePiece ===

impl ResponsePiece {
    /// The same data, which count as this many bytes for the request that `tally` counts for.
    pub fn counted(data: Bytes, mut tally: Tally, bytes: usize) -> Bytes {
        tally.set(bytes);
        let holder = tally.account().holder();
        holder.slots().add();
        if let Some(pieces) = holder.pieces() {
            pieces.add();
        }
        Bytes::from_owner(Self { data, tally })
    }
}

impl AsRef<[u8]> for ResponsePiece {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for ResponsePiece {
    fn drop(&mut self) {
        let holder = self.tally.account().holder();
        holder.slots().remove();
        if let Some(pieces) = holder.pieces() {
            pieces.remove();
        }
    }
}

// === impl Uploading ===

impl Uploading {
    pub fn to(member: &Account) -> Arc<Self> {
        Arc::new(Self { pieces: Pieces::default(), member: member.clone() })
    }

    /// See [`Pieces::is_full`].
    pub fn is_full(&self, cx: &Context<'_>) -> bool {
        self.pieces.is_full(cx)
    }

    /// Counts a piece that is sent now. `part_of`: the request, if it is a part of a piece that
    /// counts.
    pub fn send(self: &Arc<Self>, data: Bytes, part_of: Option<&Account>) -> Bytes {
        let mut frame = part_of.map(Account::tally);
        if let Some(frame) = &mut frame {
            frame.set(FRAME);
        }
        self.pieces.add();
        self.member.holder().slots().add();
        Bytes::from_owner(UploadPiece { data, uploading: Arc::clone(self), _frame: frame })
    }
}

// === impl UploadPiece ===

impl AsRef<[u8]> for UploadPiece {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for UploadPiece {
    fn drop(&mut self) {
        self.uploading.pieces.remove();
        self.uploading.member.holder().slots().remove();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::{Wake, Waker};

    use api::cluster_name::ClusterName;

    use super::*;
    use crate::holding::{Budget, MemberAccounts};

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_body_goes_on_when_few_of_its_pieces_are_left() {
        let (pieces, woken) = (Pieces::default(), Arc::<Woken>::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        for _ in 0..MOST {
            assert!(!pieces.is_full(&cx));
            pieces.add();
        }
        assert!(pieces.is_full(&cx));
        for _ in FEW + 1..MOST {
            pieces.remove();
        }
        assert!(!woken.0.load(Ordering::Relaxed), "too many are left");
        pieces.remove();
        assert!(woken.0.load(Ordering::Relaxed) && !pieces.is_full(&cx));
    }

    #[test]
    fn the_room_for_pieces_of_uploads_stays_with_the_members_connection() {
        let accounts = MemberAccounts::new(Budget::new(1 << 30), ClusterName::parse("c1").unwrap());
        let member = accounts.open(0);
        let uploading = Uploading::to(&member);
        let pieces: Vec<_> = (0..200).map(|_| uploading.send(Bytes::from_static(b"x"), None)).collect();
        assert!(uploading.is_full(&Context::from_waker(Waker::noop())));
        drop(pieces);
        assert!(!uploading.pieces.is_any());
        assert_eq!(member.holder().slots_bytes(), (256 - USUAL) * SLOT);
    }
}
