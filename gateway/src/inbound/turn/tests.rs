//! Tests of what a client makes h2 take in at once.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::yield_now;

use super::*;
use crate::holding::{self, Account, Budget};
use crate::inbound::{Inbound, Marks};
use crate::unread::Collector;

/// Size of h2's reads.
const READ: usize = 32 * 1024;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A client's connection, from the gateway's side.
struct Received {
    inbound: Inbound<DuplexStream>,
    collector: Arc<Collector>,
    account: Account,
    /// What the account counts for an idle connection.
    rest: u64,
}

// === impl Received ===

impl Received {
    /// A connection whose client has sent `bytes`; `budget` limits what the gateway may hold.
    async fn with(budget: &Budget, bytes: &[u8]) -> Self {
        let account = holding::open(budget, 0, [10, 0, 0, 1].into());
        let collector = Arc::<Collector>::default();
        let (ours, mut theirs) = duplex(PREFACE.len() + bytes.len());
        theirs.write_all(&[PREFACE, bytes].concat()).await.unwrap();
        let inbound = Inbound::of_client(ours, Marks::default()).attended_by(Arc::clone(&collector)).held_for(&account);
        let rest = account.held();
        Self { inbound, collector, account, rest }
    }

    /// Reads until nothing is left for now. Returns the bytes, and what they count as.
    async fn turn(&mut self) -> std::io::Result<(usize, u64)> {
        self.collector.begin_turn();
        let mut read = 0;
        let mut buffer = vec![0; READ];
        loop {
            match futures_util::poll!(std::pin::pin!(self.inbound.read(&mut buffer))) {
                Poll::Ready(Ok(0)) | Poll::Pending => return Ok((read, self.account.held() - self.rest)),
                Poll::Ready(bytes) => read += bytes?,
            }
        }
    }
}

/// Requests with a field of one byte (`accept-charset` in the static table), 16,378 times.
fn heads(number: u32) -> Vec<u8> {
    let block = [&[0x82, 0x87, 0x84, 0x41, 1, b'a'][..], &[0x8f; 16_378]].concat();
    let head = |at: u32| [&[0, 0x40, 0, 1, 4][..], &(2 * at + 1).to_be_bytes(), &block].concat();
    (0..number).flat_map(head).collect()
}

/// h2 makes 1.18 MB of each: 75 MB of these, on each of a stranger's connections.
#[tokio::test]
async fn a_turn_takes_in_few_heads_and_they_count_before_anybody_has_seen_them() {
    let budget = Budget::new(1 << 30);
    let mut received = Received::with(&budget, &heads(64)).await;
    let (bytes, held) = received.turn().await.unwrap();
    assert!(bytes <= HEADS + 2 * READ, "{bytes} bytes in one turn");
    assert!(held >= 72 * (bytes as u64 - READ as u64), "{held} are counted for {bytes}");
    let (more, _) = received.turn().await.unwrap();
    assert!(more > 0, "the rest comes in the turns after it");
    while received.turn().await.unwrap().0 > 0 {}
    let (_, held) = received.turn().await.unwrap();
    assert_eq!(held, 0, "they are others' by now");
}

/// The same poll that finds no room would take them in.
#[tokio::test]
async fn heads_for_which_there_is_no_room_never_reach_h2() {
    let budget = Budget::new(1 << 20);
    let mut received = Received::with(&budget, &heads(64)).await;
    let end = received.turn().await;
    assert!(end.is_err(), "{end:?}");
}

/// h2 never frees the memory of its frames' slots.
#[tokio::test]
async fn frames_of_a_byte_count_for_as_long_as_the_connection_lasts() {
    const FRAMES_SENT: usize = 4096;
    let budget = Budget::new(1 << 30);
    let byte = [0, 0, 1, 0, 0, 0, 0, 0, 1, b'x'];
    let mut received = Received::with(&budget, &byte.repeat(FRAMES_SENT)).await;
    let (bytes, _) = received.turn().await.unwrap();
    assert!(bytes > 40_000, "{bytes}");
    let (_, held) = received.turn().await.unwrap();
    assert!(held >= 240 * (FRAMES_SENT as u64 - 64), "{held} are counted");
    // As many frames again, but not more at once, take no more memory.
    drop(received);
    assert_eq!(budget.held(), 0);
}

/// A block in frames that every peer takes.
fn framed(block: &[u8]) -> Vec<u8> {
    const FRAME: usize = 16 << 10;
    const END: [u8; 9] = [0, 0, 0, 9, 4, 0, 0, 0, 1];
    let kinds = std::iter::once(1).chain(std::iter::repeat(9));
    let frame = |(part, kind): (&[u8], u8)| {
        let length = u32::try_from(part.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 1], part].concat()
    };
    block.chunks(FRAME).zip(kinds).flat_map(frame).chain(END).collect()
}

/// h2 decodes Huffman code into a buffer that it never frees.
#[tokio::test]
async fn a_long_coded_value_counts_for_as_long_as_the_connection_lasts() {
    const CODED: usize = 500_000;
    // Zeros, of five bits each, behind their length (RFC 7541 §5.1).
    let field = [&[0, 1, b'x', 0xff, 0xa1, 0xc1, 0x1e][..], &vec![0; CODED]].concat();
    let block = [&[0x82, 0x87, 0x84, 0x41, 1, b'a'][..], &field].concat();
    let budget = Budget::new(1 << 30);
    let mut received = Received::with(&budget, &framed(&block)).await;
    while received.turn().await.unwrap().0 > 0 {}
    let (_, held) = received.turn().await.unwrap();
    assert!(held > 770_000 && held < 1_000_000, "{held} are counted");
}

/// As many short lines as an API server relays from a workload, which are all remembered.
#[tokio::test]
async fn the_largest_head_of_a_workload_fits_into_the_budget_of_a_small_pod() {
    const LINES: usize = (10 << 20) / 6;
    let block = [0x40, 4, b'!', b'a', b'b', b'c', 0].repeat(LINES);
    let sent = framed(&block);
    let budget = Budget::new(256 << 20);
    let account = holding::open(&budget, 0, [10, 0, 0, 1].into());
    let (ours, mut theirs) = duplex(sent.len());
    theirs.write_all(&sent).await.unwrap();
    let mut inbound = Inbound::of_member(ours, Marks::default()).held_for(&account);
    let (mut read, mut buffer) = (0, vec![0; READ]);
    while read < block.len() {
        if let Poll::Ready(bytes) = futures_util::poll!(std::pin::pin!(inbound.read(&mut buffer))) {
            read += bytes.expect("there is room");
        } else {
            yield_now().await;
        }
    }
}

/// h2 never frees the slots of pieces that waited to be sent, either.
#[tokio::test]
async fn the_most_pieces_that_waited_at_once_count_for_as_long_as_the_connection_lasts() {
    const PIECES: usize = 1000;
    let budget = Budget::new(1 << 30);
    let mut received = Received::with(&budget, b"").await;
    let request =
        holding::open_request(&budget, 0, &received.account, (&Method::GET, &Uri::from_static("/")), &HeaderMap::new());
    for _ in 0..3 {
        let pieces: Vec<_> = (0..PIECES).map(|_| holding::hold_piece(&request, Bytes::from_static(b"x"))).collect();
        drop(pieces);
    }
    let (_, held) = received.turn().await.unwrap();
    assert!((300_000..400_000).contains(&held), "{held} are counted");
}

/// An account that was asked to give way still holds its bytes.
#[tokio::test]
async fn nothing_is_read_before_those_that_give_way_are_gone() {
    let budget = Budget::new(1 << 20);
    let mut received = Received::with(&budget, &heads(1)).await;
    let greedy = holding::open(&budget, 0, [10, 0, 0, 2].into());
    greedy.take(2 << 20);
    assert!(greedy.is_ended());
    for _ in 0..3 {
        assert_eq!(received.turn().await.unwrap().0, 0, "it would be more still");
    }
    drop(greedy);
    assert!(received.turn().await.is_err() || budget.held() > 1 << 20, "its own is too much by itself");
    // HTTP/2 may keep unread bytes for long, so other connections continue.
    let mut received = Received::with(&budget, b"").await;
    let stays = holding::open(&budget, 0, [10, 0, 0, 2].into());
    stays.take(2 << 20);
    let mut turns = 0;
    while received.turn().await.unwrap().0 == 0 {
        turns += 1;
        assert!(turns < 1000, "it waits for ever");
    }
}
