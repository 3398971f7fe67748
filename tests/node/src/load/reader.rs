//! Reads one object again and again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chaos_tests::caller::{Caller, Failure};
use http::StatusCode;
use http::header::RETRY_AFTER;
use tokio::time::sleep;

use super::{PACE, Shared};

/// As often as client-go (`maxRetries`).
const REPETITIONS: u32 = 10;
/// What it waits where nobody says how long, or says a second.
const AGAIN: Duration = Duration::from_secs(1);

enum Read {
    Whole,
    /// A client does so by itself.
    Again(String),
    Failed(String),
}

pub(super) async fn run(shared: &Shared, caller: &Caller, base: &str) {
    let path = format!("{base}/api/v1/namespaces/kube-system");
    while !shared.is_over() {
        read(shared, caller, &path).await;
        sleep(PACE).await;
    }
}

async fn read(shared: &Shared, caller: &Caller, path: &str) {
    let mut last = String::new();
    for _ in 0..=REPETITIONS {
        match once(caller, path).await {
            Read::Whole => {
                shared.reads.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Read::Failed(what) => return shared.wrong(format!("{path}: {what}")),
            Read::Again(what) => last = what,
        }
        shared.repeated.fetch_add(1, Ordering::Relaxed);
        sleep(AGAIN).await;
    }
    shared.wrong(format!("{path}: {REPETITIONS} repetitions failed: {last}"));
}

async fn once(caller: &Caller, path: &str) -> Read {
    let answer = match caller.get(path).await {
        Ok(answer) => answer,
        Err(Failure::Broken(what)) => return Read::Again(what),
        Err(Failure::NotSent(what)) => return Read::Failed(what),
    };
    let text = String::from_utf8_lossy(&answer.body);
    if answer.status == StatusCode::OK && text.contains("\"name\":\"kube-system\"") {
        return Read::Whole;
    }
    let what = format!("{} {}", answer.status, text.chars().take(600).collect::<String>());
    let may_again = answer.status == StatusCode::TOO_MANY_REQUESTS || answer.status.is_server_error();
    if may_again && answer.headers.contains_key(RETRY_AFTER) { Read::Again(what) } else { Read::Failed(what) }
}
