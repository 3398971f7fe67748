use std::sync::atomic::{AtomicUsize, Ordering};

use net::tls::client_files::{ClientFiles, FollowedClient};
use tokio::io::duplex;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tunnel::{Hop, Serving, Settings, serve};

use super::link_pool::{IDLE_LOOKS, LOOK, look_after};
use super::*;

/// A server at `address` without links.
fn replica(address: SocketAddr) -> Arc<Replica> {
    let directory = tempfile::tempdir().unwrap();
    let ca = kit::pki::Authority::new("tunnel-server-ca").write_to(directory.path(), "ca").unwrap();
    let tls = FollowedClient::load(ClientFiles { ca: Some(ca), identity: None }).unwrap();
    let linking = Linking { tls, settings: Settings::default(), timeout: Duration::from_secs(5) };
    let name = ServerName::try_from("localhost").unwrap();
    Replica::new(address, name, Arc::new(linking), Gauge::default())
}

fn wanted() -> (ClusterName, Destination) {
    (ClusterName::parse("berlin").unwrap(), Destination::new("kubernetes.default.svc", 443).unwrap())
}

/// A link, and its other end, which accepts every stream and keeps it open.
async fn link() -> (Link, Serving) {
    let (ours, theirs) = duplex(64 * 1024);
    let serving = Serving::default();
    let theirs_too = serving.clone();
    tokio::spawn(async move {
        let keep = |incoming: tunnel::Incoming| async move {
            let _stream = incoming.accept();
            std::future::pending::<()>().await;
        };
        serve(theirs, &Settings::default(), theirs_too, keep).await
    });
    (Link::start(ours, &Settings::default(), Hop::Server).await.unwrap(), serving)
}

/// A server at `address` with one link, and the link's other end.
pub async fn linked(address: SocketAddr) -> (Arc<Replica>, Serving) {
    let (replica, (link, serving)) = (replica(address), link().await);
    replica.made(Handle::current().id(), &link, 0, CancellationToken::new().drop_guard());
    (replica, serving)
}

#[tokio::test(start_paused = true)]
async fn a_link_that_nobody_wants_is_let_go_of() {
    let replica = replica(([192, 0, 2, 1], 8090).into());
    let (cluster, to) = wanted();
    let (link, _serving) = link().await;
    let stream = link.open(&to, Some(&cluster)).await.unwrap();
    let looking = tokio::spawn({
        let (replica, link) = (Arc::downgrade(&replica), link.clone());
        async move { look_after(&replica, Handle::current().id(), CancellationToken::new(), link).await }
    });
    // The clock is paused and advances timer by timer here. A single leap would skip the link's
    // PINGs.
    tokio::time::sleep(LOOK * (IDLE_LOOKS + 5)).await;
    assert!(!looking.is_finished(), "it has a stream");
    drop(stream);
    let since = Instant::now();
    assert_eq!(looking.await.unwrap(), "idle");
    assert!(since.elapsed() >= LOOK * IDLE_LOOKS, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_server_that_cannot_be_linked_to_is_left_alone_for_a_moment() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let dialled = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dialled);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(tcp);
        }
    });
    let (replica, (cluster, to)) = (replica(address), wanted());
    let mut told = Vec::new();
    for _ in 0..20 {
        match replica.open(&cluster, &to).await {
            Err(NotOpened::Unreachable(unreachable)) => told.push(unreachable.to_string()),
            _ => panic!("nobody speaks TLS there"),
        }
    }
    assert!(told.iter().all(|text| text.starts_with(&format!("dial tcp {address}: tls: "))), "{told:?}");
    assert!(replica.is_doubtful() && dialled.load(Ordering::SeqCst) < 10, "{dialled:?}");
    let again = async || {
        let _ = replica.open(&cluster, &to).await;
        dialled.load(Ordering::SeqCst) > 1
    };
    kit::wait::becomes(Duration::from_secs(5), "another attempt", again).await;
}

/// The stream is not read, as when a client has stopped: the cost of short frames is bounded.
#[tokio::test]
async fn a_link_does_not_keep_short_frames_without_end() {
    let (ours, theirs) = duplex(64 * 1024);
    tokio::spawn(async move {
        let flood = |incoming: tunnel::Incoming| async move {
            let mut stream = incoming.accept().unwrap();
            while tokio::io::AsyncWriteExt::write_all(&mut stream, b"x").await.is_ok() {}
        };
        serve(theirs, &Settings::default(), Serving::default(), flood).await
    });
    let settings = Settings { short_frames: 1024 * 1024, ..Settings::default() };
    let link = Link::start(ours, &settings, Hop::Server).await.unwrap();
    let (cluster, to) = wanted();
    let _unread = link.open(&to, Some(&cluster)).await.unwrap();
    kit::wait::within(Duration::from_secs(10), "the end of the link", link.ended()).await;
}
