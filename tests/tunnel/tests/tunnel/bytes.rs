//! Every byte arrives, once and in order, and each direction ends by itself.

use std::io;
use std::time::Duration;

use kit::wait::{WAIT, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, split};
use tokio::task::JoinSet;
use tunnel_tests::{AgentSpec, Frontend, Site, Testbed, Tunnel, measure, pattern, testbed::CLUSTER};

const KILO: u64 = 1000;
const MEGA: u64 = 1000 * KILO;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_comes_back_byte_for_byte() {
    let testbed = Testbed::simple().await;
    let echo = Site::echo().await;
    for caller in testbed.callers() {
        let (mut reader, mut writer) = split(caller.must(&echo.authority()).await);
        let send = async {
            pattern::write(&mut writer, 3 * MEGA + 1).await?;
            writer.shutdown().await
        };
        let (sent, received) = tokio::join!(send, pattern::read_to_end(&mut reader));
        sent.unwrap_or_else(|error| panic!("{:?}: {error}", caller.kind()));
        assert_eq!(received.expect("a proper end"), 3 * MEGA + 1, "{:?}", caller.kind());
    }
    testbed.wait_idle().await;
    assert_eq!(echo.open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_data_both_ways_at_once_is_exact_and_not_held() {
    let bytes = std::env::var("TUNNEL_MEBIBYTES").map_or(64, |text| text.parse().expect("a number")) << 20;
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).alone().start().await;
    let site = Site::exchange(bytes).await;
    for kind in [Frontend::Tls, Frontend::H2] {
        let (mut reader, mut writer) = split(testbed.caller(kind).must(&site.authority()).await);
        let before = measure::resident();
        let mut most = before;
        let exchange =
            async { tokio::try_join!(pattern::write(&mut writer, bytes), pattern::read(&mut reader, bytes)) };
        tokio::pin!(exchange);
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                done = &mut exchange => break done.map(drop),
                _ = looks.tick() => most = most.max(measure::resident()),
            }
        }
        .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(site.ending().await.expect("exact at the destination too"), bytes);
        let grown = most.saturating_sub(before) >> 20;
        println!("{kind:?}: {} MiB both ways, memory grew by {grown} MiB at most", bytes >> 20);
        assert!(grown < 96, "{kind:?}: {grown} MiB held");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_downloads_of_ten_mebibytes_are_whole() {
    let testbed = Testbed::simple().await;
    let source = Site::source(10 << 20).await;
    let mut downloads = JoinSet::new();
    for at in 0..10 {
        let caller = testbed.caller(Frontend::ALL[at % 3]);
        let authority = source.authority();
        downloads.spawn(async move { pattern::read_to_end(&mut caller.must(&authority).await).await });
    }
    while let Some(read) = downloads.join_next().await {
        assert_eq!(read.expect("no panic").expect("a proper end"), 10 << 20);
    }
    testbed.wait_idle().await;
}

/// The client is gone before the destination has read anything: its bytes arrive nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_then_close_delivers_everything_always() {
    let testbed = Testbed::simple().await;
    let collect = Site::collect().await;
    for (bytes, times) in [(1, 100), (KILO, 100), (100 * KILO, 100), (MEGA, 50), (5 * MEGA, 20)] {
        let complete = write_and_close(&testbed, &collect, bytes, times).await;
        assert_eq!(complete, times, "of {times} with {bytes} bytes");
    }
    testbed.wait_idle().await;
}

/// How many of `times` arrived whole. Each kind of frontend takes its turn, a few at a time.
async fn write_and_close(testbed: &Testbed, collect: &Site, bytes: u64, times: usize) -> usize {
    const AT_A_TIME: usize = 10;
    let callers = testbed.callers().map(std::sync::Arc::new);
    let (mut writers, mut complete) = (JoinSet::new(), 0);
    for at in 0..times {
        let (caller, authority) = (callers[at % 3].clone(), collect.authority());
        writers.spawn(async move {
            let mut tunnel = caller.must(&authority).await;
            pattern::write(&mut tunnel, bytes).await?;
            match &mut tunnel {
                Tunnel::Uds(_) => {}
                // Without `close_notify` it would be cut off.
                Tunnel::Tls(_) => tunnel.shutdown().await?,
                // Dropping a stream resets it: a client that wants to be done says so and waits for
                // the answer.
                Tunnel::H2(_) => {
                    tunnel.shutdown().await?;
                    assert_eq!(tunnel.read(&mut [0]).await?, 0);
                }
            }
            io::Result::Ok(())
        });
        if writers.len() == AT_A_TIME || at + 1 == times {
            while let Some(written) = writers.join_next().await {
                written.expect("no panic").expect("written");
                complete += usize::from(collect.ending().await.is_ok_and(|read| read == bytes));
            }
        }
    }
    complete
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_destination_wrote_before_it_closed_arrives() {
    let testbed = Testbed::simple().await;
    for bytes in [1, KILO, 100 * KILO, 5 * MEGA] {
        let source = Site::source(bytes).await;
        for caller in testbed.callers() {
            for _ in 0..5 {
                let mut tunnel = caller.must(&source.authority()).await;
                let read = within(WAIT, "the end", pattern::read_to_end(&mut tunnel)).await;
                assert_eq!(read.expect("a proper end"), bytes, "{:?}", caller.kind());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_after_the_clients_end() {
    let testbed = Testbed::simple().await;
    let count = Site::count().await;
    for caller in testbed.callers() {
        for bytes in [0, 1, MEGA] {
            let mut tunnel = caller.must(&count.authority()).await;
            pattern::write(&mut tunnel, bytes).await.expect("written");
            tunnel.shutdown().await.expect("half-closed");
            let mut answer = String::new();
            let read = tunnel.read_to_string(&mut answer);
            within(WAIT, "the answer", read).await.unwrap_or_else(|error| panic!("{:?}: {error}", caller.kind()));
            assert_eq!(answer, bytes.to_string(), "{:?}", caller.kind());
        }
    }
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_go_on_after_the_destinations_end() {
    let testbed = Testbed::simple().await;
    let site = Site::speaks_then_listens(b"bye").await;
    for caller in testbed.callers() {
        let mut tunnel = caller.must(&site.authority()).await;
        let mut words = Vec::new();
        within(WAIT, "the end", tunnel.read_to_end(&mut words)).await.expect("a proper end");
        assert_eq!(words, b"bye");
        pattern::write(&mut tunnel, MEGA).await.unwrap_or_else(|error| panic!("{:?}: {error}", caller.kind()));
        tunnel.shutdown().await.expect("ended");
        assert_eq!(site.ending().await.expect("whole"), MEGA, "{:?}", caller.kind());
    }
    testbed.wait_idle().await;
}

/// A server that checks after half a second whether a link still lives, and waits for the answer no
/// longer.
async fn impatient() -> Testbed {
    let builder = Testbed::builder().agent(AgentSpec::new(CLUSTER)).server_flag("--keepalive=500ms");
    builder.server_flag("--keepalive-timeout=500ms").waiting().start().await
}

async fn all(mut readers: JoinSet<()>) {
    while let Some(read) = readers.join_next().await {
        read.expect("no panic");
    }
}

/// Neither silence of a stream nor of its reader is a reason to end it: only silence of the link
/// is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_may_pause_far_beyond_the_keepalive() {
    let testbed = impatient().await;
    let source = Site::source(20 << 20).await;
    let echo = Site::echo().await;
    let mut readers = JoinSet::new();
    for caller in testbed.callers() {
        let (source, echo) = (source.authority(), echo.authority());
        readers.spawn(async move {
            let (mut paused, mut silent) = (caller.must(&source).await, caller.must(&echo).await);
            pattern::write(&mut silent, 10).await.expect("written");
            // Not a wait for something: the pause is the case.
            tokio::time::sleep(Duration::from_secs(3)).await;
            let read = pattern::read_to_end(&mut paused).await;
            assert_eq!(read.expect("a proper end"), 20 << 20, "{:?}", caller.kind());
            pattern::read(&mut silent, 10).await.expect("still open");
        });
    }
    all(readers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_may_trickle() {
    let testbed = impatient().await;
    let source = Site::source(8 << 20).await;
    let mut readers = JoinSet::new();
    for caller in testbed.callers() {
        let source = source.authority();
        readers.spawn(async move {
            let mut tunnel = caller.must(&source).await;
            let mut check = pattern::Check::default();
            let mut buffer = [0; 1 << 10];
            for _ in 0..20 {
                tunnel.read_exact(&mut buffer).await.expect("more");
                check.take(&buffer).expect("in order");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let mut rest = Vec::new();
            tunnel.read_to_end(&mut rest).await.expect("a proper end");
            check.take(&rest).expect("in order");
            assert_eq!(rest.len(), (8 << 20) - (20 << 10), "{:?}", caller.kind());
        });
    }
    all(readers).await;
}
