//! How long a hub takes for its own part, beside what a test measures: where that is long, the
//! machine is slow or busy, and everything that goes through the hub is late by as much.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use anyhow::{Result, ensure};
use http::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use crate::control_plane::ApiServer;

/// Pause between two looks: several fall into a second, and cost little.
const PAUSE: Duration = Duration::from_millis(200);
/// A look is one pair of a write and a read; what tests measure takes up to two: a program is told
/// of a change and writes, another write follows from that, and the test reads.
const MOST_PAIRS: u32 = 2;
/// More is no allowance: a program that keeps the hub busy would extend its own time.
const MOST: Duration = Duration::from_secs(2);
/// A hub that takes so long for one pair fails the test by itself.
const SLOWEST: Duration = Duration::from_secs(10);

/// Says on drop that it is over, and wakes who pauses between two looks.
struct Over<'a> {
    is_over: &'a AtomicBool,
    looks: &'a Thread,
}

/// Runs `measured`, while another client writes to the hub and reads from it. Returns its outcome,
/// and how late a promise may be that does not count the hub's own part: twice the longest that
/// this client waited, and at most 2 s.
///
/// # Errors
///
/// That of `measured`, or the hub's; or the hub took 10 s or more for a write and a read.
pub fn beside<T>(server: &ApiServer, measured: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let looks = scope.spawn(|| longest(server, &is_over));
        let outcome = {
            // Also if it panics: the scope waits for the looks.
            let _over = Over { is_over: &is_over, looks: looks.thread() };
            measured()
        };
        let longest = looks.join().expect("no panic");
        let (outcome, longest) = (outcome?, longest?);
        ensure!(longest < SLOWEST, "the hub took {longest:?} for a write and a read, and not less than {SLOWEST:?}");
        Ok((outcome, MOST.min(MOST_PAIRS * longest)))
    })
}

/// A write that the hub checks as any other and does not keep, and a read, again and again.
fn longest(server: &ApiServer, is_over: &AtomicBool) -> Result<Duration> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pace", "namespace": "default"}});
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        server.dry_run(&object)?.expect(StatusCode::CREATED)?;
        server.read("namespace default")?;
        longest = longest.max(begin.elapsed());
        thread::park_timeout(PAUSE);
    }
    Ok(longest)
}

// === impl Over ===

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.looks.unpark();
    }
}
