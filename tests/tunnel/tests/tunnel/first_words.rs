//! A destination that speaks first: kube-apiserver drops a connection if one byte of it comes
//! together with the 200.

use std::sync::Arc;
use std::time::Duration;

use kit::wait::within;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tunnel_tests::{Caller, Frontend, Site, Testbed};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";
const BANNER: &[u8] = b"SSH-2.0-speaks-first\r\n";
const PATIENCE: Duration = Duration::from_secs(10);

/// Possible delay of a client on a busy machine: longer than a server that only waits would wait.
const LATE: Duration = Duration::from_millis(40);

/// One dial of a client that looks `late`; the bytes of its first read, and those after it.
async fn first_read(caller: &Caller, authority: &str, late: Duration) -> (Vec<u8>, Vec<u8>) {
    let mut io = caller.connect().await.expect("connected");
    io.write_all(caller.head(authority).as_bytes()).await.expect("written");
    io.flush().await.expect("written");
    tokio::time::sleep(late).await;
    let mut buffer = vec![0; 64 << 10];
    let read = within(PATIENCE, "the first read", io.read(&mut buffer)).await.expect("an answer");
    let mut banner = vec![0; BANNER.len()];
    within(PATIENCE, "the banner", io.read_exact(&mut banner)).await.expect("a banner");
    (buffer[..read].to_vec(), banner)
}

async fn all_alone(kind: Frontend, dials: usize, at_a_time: usize) {
    let testbed = Testbed::simple().await;
    let site = Site::banner(BANNER).await;
    let caller = Arc::new(testbed.caller(kind));
    let (mut tasks, mut started, mut alone) = (JoinSet::new(), 0, 0);
    while alone < dials {
        while started < dials && tasks.len() < at_a_time {
            let (caller, authority) = (caller.clone(), site.authority());
            let late = if started % 2 == 0 { LATE } else { Duration::ZERO };
            tasks.spawn(async move { first_read(&caller, &authority, late).await });
            started += 1;
        }
        let (first, banner) = tasks.join_next().await.expect("one runs").expect("a 200 and then a banner");
        assert_eq!(String::from_utf8_lossy(&first), String::from_utf8_lossy(ESTABLISHED), "after {alone} good ones");
        assert_eq!(banner, BANNER);
        alone += 1;
    }
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_200_is_alone_in_its_read_on_all_of_1000_unix_sockets() {
    all_alone(Frontend::Uds, 1_000, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_200_is_alone_in_its_record_over_tls() {
    all_alone(Frontend::Tls, 400, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_impatient_client_sends_before_the_200_is_kept() {
    let testbed = Testbed::simple().await;
    let echo = Site::echo().await;
    for kind in [Frontend::Uds, Frontend::Tls] {
        let caller = testbed.caller(kind);
        let mut io = caller.connect().await.expect("connected");
        let text = caller.head(&echo.authority()) + "early";
        io.write_all(text.as_bytes()).await.expect("written");
        io.flush().await.expect("written");
        let mut answer = vec![0; ESTABLISHED.len() + 5];
        within(PATIENCE, "200 and the echo", io.read_exact(&mut answer)).await.expect("both");
        assert_eq!(answer, [ESTABLISHED, b"early"].concat(), "{kind:?}");
    }
}
