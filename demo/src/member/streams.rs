//! Answers that go on while time passes: watches, and followed logs.
//!
//! Each is a task that wakes every second. It ends when the member goes, and within a second of its
//! caller's going or of its caller's not reading: nothing waits for room.

use std::sync::Arc;

use kit::member::{Reply, StreamSender};
use tokio::sync::watch;

use super::{cluster::Cluster, selection::Selection};

/// A watch that shows `initial`, and then the changes after `version`.
pub(super) fn watch(
    cluster: &Arc<Cluster>,
    seconds: watch::Receiver<u64>,
    selection: Selection,
    initial: String,
    mut version: u64,
) -> Reply {
    let (sender, reply) = Reply::stream(200, &[("content-type", "application/json")]);
    let cluster = Arc::clone(cluster);
    tokio::spawn(every_second(sender, seconds, initial, move |seconds| {
        let changes = version + 1..=Cluster::resource_version(seconds);
        version = Cluster::resource_version(seconds).max(version);
        Some(changes.filter_map(|version| selection.change(&cluster, version)).collect())
    }));
    reply
}

/// The last `tail` lines of the log of a pod that is there, and those that come if it is to be
/// followed.
pub(super) fn log(
    cluster: &Arc<Cluster>,
    seconds: watch::Receiver<u64>,
    namespace: &str,
    name: &str,
    tail: Option<u64>,
    follow: bool,
) -> Reply {
    let cluster = Arc::clone(cluster);
    let end = Cluster::lines(*seconds.borrow());
    let first = end.saturating_sub(tail.unwrap_or(end));
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let old: String = (first..end).map(|number| line(&name, number)).collect();
    let mut position = end;
    let is_running = move |namespace: &str, name: &str, seconds| {
        let pod = cluster.pod(namespace, name, seconds);
        pod.is_some_and(|pod| pod["status"]["containerStatuses"][0]["state"].get("running").is_some())
    };
    if !follow || !is_running(&namespace, &name, *seconds.borrow()) {
        return Reply::full(200, &[("content-type", "text/plain")], old);
    }
    let (sender, reply) = Reply::stream(200, &[("content-type", "text/plain")]);
    tokio::spawn(every_second(sender, seconds, old, move |seconds| {
        let new = position..Cluster::lines(seconds);
        position = new.end;
        // A pod that is over ends its log, as the kubelet does.
        is_running(&namespace, &name, seconds).then(|| new.map(|number| line(&name, number)).collect())
    }));
    reply
}

/// Sends `first`, and then what `next` has after so many seconds, until it has `None`.
async fn every_second(
    sender: StreamSender,
    mut seconds: watch::Receiver<u64>,
    first: String,
    mut next: impl FnMut(u64) -> Option<String>,
) {
    let mut text = Some(first);
    while let Some(piece) = text {
        if sender.is_gone() || !piece.is_empty() && !sender.try_send(piece) {
            return;
        }
        if seconds.changed().await.is_err() {
            return;
        }
        text = next(*seconds.borrow_and_update());
    }
}

/// The text of one line.
fn line(pod: &str, number: u64) -> String {
    const PATHS: [&str; 6] = ["/", "/cart", "/search?q=tea", "/api/items", "/healthz", "/checkout"];
    // Knuth's multiplicative hash: the same line each time it is asked for, and no pattern that
    // shows.
    let seed = pod.bytes().fold(number, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let path = PATHS[usize::try_from(chance % 6).unwrap_or_default()];
    let status = if (chance >> 8).is_multiple_of(32) { 503 } else { 200 };
    format!("level=info n={number} path={path} status={status} duration={}ms\n", 1 + (chance >> 16) % 90)
}
