//! Tests: accepted clients change with the file, also for connected peers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::pki::{Authority, Leaf};
use tokio::time::sleep;

use super::*;

fn peer(authority: &Authority) -> (Peer, Vec<CertificateDer<'static>>) {
    let chain = authority.issue(&Leaf::client("")).chain_der;
    (Peer::new(([127, 0, 0, 1], 1).into(), chain.clone()), chain)
}

#[tokio::test(start_paused = true)]
async fn the_file_decides_now_and_after_each_change() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let directory = tempfile::tempdir().expect("a directory");
    let path = old.write_to(directory.path(), "ca").expect("written");
    let failures = Arc::new(AtomicUsize::new(0));
    let failed = Arc::clone(&failures);
    let count = move || {
        failed.fetch_add(1, Ordering::SeqCst);
    };
    let ca = ClientCa::open(&path, &Handle::current(), count).expect("a good file");
    let ((by_old, old_chain), (by_new, new_chain)) = (peer(&old), peer(&new));
    let round = async || sleep(net::follow::INTERVAL + Duration::from_millis(1)).await;

    assert!(ca.judge(&by_old).is_ok() && ca.admit(&old_chain).is_ok());
    assert!(ca.judge(&by_new).is_err() && ca.admit(&new_chain).is_err());
    assert!(
        ca.judge(&Peer::new(([127, 0, 0, 1], 1).into(), Vec::new())).is_err(),
        "nobody comes without a certificate"
    );

    new.write_to(directory.path(), "ca").expect("written");
    round().await;
    assert!(ca.judge(&by_old).is_err() && ca.admit(&old_chain).is_err());
    assert!(ca.judge(&by_new).is_ok() && ca.admit(&new_chain).is_ok());

    std::fs::write(&path, "no certificate").expect("written");
    round().await;
    round().await;
    assert!(ca.judge(&by_new).is_ok(), "the last good file stays in force");
    assert_eq!(failures.load(Ordering::SeqCst), 1);

    std::fs::remove_file(&path).expect("removed");
    round().await;
    round().await;
    assert!(ca.judge(&by_new).is_ok());
    assert_eq!(failures.load(Ordering::SeqCst), 2, "a file that is gone counts, too");
}
