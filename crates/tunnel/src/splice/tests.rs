//! Two links with a relay between them: `left` requests streams, `right` leads to the destination.

use std::future::poll_fn;
use std::time::Duration;

use kit::wait::{eventually, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;
use crate::Settings;
use crate::testing::Pair;

const SOON: Duration = Duration::from_secs(10);

/// The outer ends of a spliced pair of streams.
struct Relayed {
    left: Stream,
    right: Stream,
    gauge: Arc<Gauge>,
    end: JoinHandle<io::Result<()>>,
}

async fn relayed(left: &mut Pair, right: &mut Pair, budget: &Budget) -> Relayed {
    let (near, a) = left.open().await;
    let (b, far) = right.open().await;
    let gauge = Arc::new(Gauge::default());
    let (counted, budget) = (Arc::clone(&gauge), budget.clone());
    let end = tokio::spawn(async move { splice(a, b, counted, &budget).await });
    Relayed { left: near, right: far, gauge, end }
}

#[tokio::test]
async fn bytes_and_ends_pass_each_way_by_themselves() {
    let (mut left, mut right) = (Pair::new().await, Pair::new().await);
    let budget = Budget::new(1 << 30);
    let Relayed { left: mut near, right: mut far, gauge, end } = relayed(&mut left, &mut right, &budget).await;
    let sent = vec![7; 3_000_000];
    let sending = async {
        near.write_all(&sent).await.unwrap();
        near.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let ((), read) = tokio::join!(sending, far.read_to_end(&mut heard));
    assert_eq!((read.unwrap(), heard == sent), (sent.len(), true));
    far.write_all(b"after your end").await.unwrap();
    far.shutdown().await.unwrap();
    heard.clear();
    near.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"after your end");
    end.await.unwrap().unwrap();
    assert_eq!(gauge.forth.load(Ordering::Relaxed), 3_000_000);
    assert_eq!(gauge.back.load(Ordering::Relaxed), 14);
    assert_eq!((gauge.held(), budget.held()), (0, 0));
}

fn roomy() -> Budget {
    Budget::new(1 << 30)
}

async fn is_cut(stream: &mut Stream) {
    let error = within(SOON, "the reset", poll_fn(|cx| stream.poll_reset(cx))).await;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_reset_passes_both_ways() {
    let (mut left, mut right) = (Pair::new().await, Pair::new().await);
    let Relayed { left: near, right: mut far, end, .. } = relayed(&mut left, &mut right, &roomy()).await;
    drop(near);
    is_cut(&mut far).await;
    assert_eq!(end.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);

    let Relayed { left: mut near, right: far, end, .. } = relayed(&mut left, &mut right, &roomy()).await;
    drop(far);
    is_cut(&mut near).await;
    assert_eq!(end.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_reset_is_seen_when_only_the_other_way_is_open() {
    let (mut left, mut right) = (Pair::new().await, Pair::new().await);
    // Idle, and with a writer that waits for the side that goes away; each side once.
    for (written, swapped) in [(0, false), (0, true), (64 << 20, false), (64 << 20, true)] {
        let Relayed { left: near, right: far, end, .. } = relayed(&mut left, &mut right, &roomy()).await;
        let (mut goes, mut stays) = if swapped { (far, near) } else { (near, far) };
        goes.shutdown().await.unwrap();
        assert_eq!(stays.read(&mut [0]).await.unwrap(), 0);
        let writing = tokio::spawn(async move {
            let _ = stays.write_all(&vec![0; written]).await;
            is_cut(&mut stays).await;
        });
        tokio::task::yield_now().await;
        drop(goes);
        within(SOON, "the writer", writing).await.unwrap();
        end.await.unwrap().unwrap_err();
    }
}

#[tokio::test]
async fn the_loss_of_a_link_is_a_reset_on_the_other() {
    let (mut left, mut right) = (Pair::new().await, Pair::new().await);
    let Relayed { left: mut near, right: _far, end, .. } = relayed(&mut left, &mut right, &roomy()).await;
    right.link.close();
    is_cut(&mut near).await;
    end.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn dropping_the_future_resets_both() {
    let (mut left, mut right) = (Pair::new().await, Pair::new().await);
    let Relayed { left: mut near, right: mut far, end, .. } = relayed(&mut left, &mut right, &roomy()).await;
    end.abort();
    is_cut(&mut near).await;
    is_cut(&mut far).await;
}

#[tokio::test]
async fn a_stalled_stream_holds_a_window_and_is_seen_to() {
    let settings = Settings { stream_window: 100_000, stream_window_max: 100_000, ..Settings::default() };
    let (mut left, mut right) = (Pair::with(&settings).await, Pair::with(&settings).await);
    let budget = roomy();
    let Relayed { left: mut near, right: mut far, gauge, .. } = relayed(&mut left, &mut right, &budget).await;
    let sent: Vec<u8> = (0..2_000_000).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let copy = sent.clone();
    let writing = tokio::spawn(async move {
        // Frames of all sizes.
        for piece in copy.chunks(777) {
            near.write_all(piece).await.unwrap();
        }
        near.shutdown().await.unwrap();
        near
    });
    eventually(SOON, || gauge.held() >= 90_000).await;
    // Once HTTP/2 has sent what it could.
    eventually(SOON, || gauge.held() <= 100_000).await;
    assert_eq!(budget.held(), gauge.held());
    let mut heard = Vec::new();
    far.read_to_end(&mut heard).await.unwrap();
    assert!(heard == sent);
    assert_eq!(budget.held(), 0);
    let _near = writing.await.unwrap();
}

#[tokio::test]
async fn the_stream_that_holds_most_gives_way() {
    let settings = Settings { stream_window: 100_000, stream_window_max: 100_000, ..Settings::default() };
    let (mut left, mut right) = (Pair::with(&settings).await, Pair::with(&settings).await);
    let budget = Budget::new(250_000);
    let mut stalled = Vec::new();
    // Each holds 60,000, the third 90,000: together 210,000.
    for bytes in [160_000, 160_000, 190_000] {
        let mut relayed = relayed(&mut left, &mut right, &budget).await;
        relayed.left.write_all(&vec![0; bytes]).await.unwrap();
        eventually(SOON, || relayed.gauge.held() == bytes as u64 - 100_000).await;
        stalled.push(relayed);
    }
    assert_eq!((budget.free(), budget.sheds()), (40_000, 0));
    let mut one_more = relayed(&mut left, &mut right, &budget).await;
    one_more.left.write_all(&vec![0; 150_000]).await.unwrap();
    let worst = stalled.pop().unwrap();
    assert_eq!(worst.end.await.unwrap().unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    let (mut near, mut far) = (worst.left, worst.right);
    is_cut(&mut near).await;
    is_cut(&mut far).await;
    eventually(SOON, || budget.held() == 170_000).await;
    assert_eq!(budget.sheds(), 1);
    assert!(stalled.iter().all(|relayed| !relayed.end.is_finished()) && !one_more.end.is_finished());
    drop((stalled, one_more));
    eventually(SOON, || budget.held() == 0).await;
}

#[tokio::test]
async fn a_stream_can_be_ended_by_whoever_lists_it() {
    let (mut left, mut right) = (Pair::new().await, Pair::new().await);
    let Relayed { left: mut near, gauge, end, .. } = relayed(&mut left, &mut right, &roomy()).await;
    gauge.end();
    is_cut(&mut near).await;
    assert_eq!(end.await.unwrap().unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
}
