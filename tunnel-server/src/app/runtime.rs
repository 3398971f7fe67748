//! The threads of a tunnel-server: one runtime, on one thread unless more are asked for.
//!
//! A stream belongs to its connection's task, its link's task and its own, which wake each other for every frame. On one thread that is
//! a push to a list; between threads it is a system call, and most of what an echo would cost.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use net::runtime::{Apart, builder};
use tokio::runtime::Handle;

/// After the time given for draining, what has not ended is left behind.
const AFTER_DRAIN: Duration = Duration::from_secs(5);
/// Name look-ups cannot be interrupted: a thread of theirs must not hold up the end.
const LOOKUPS: Duration = Duration::from_secs(1);
/// For the tasks to be dropped when the server is: sockets are closed when its owner goes on.
const AFTER_DROP: Duration = Duration::from_secs(2);

pub struct Runtime(Apart);

// === impl Runtime ===

impl Runtime {
    /// `threads` is at least one.
    pub fn start(threads: usize) -> anyhow::Result<Self> {
        let mut builder = builder(threads);
        builder.thread_name("tunnel-worker");
        Apart::start(builder, "tunnel-runtime", LOOKUPS).map(Self).context("cannot start a runtime")
    }

    pub fn handle(&self) -> &Handle {
        self.0.handle()
    }

    /// Waits for `done`, for as long as draining may take, then ends everything.
    pub fn finish(self, done: tokio::task::JoinHandle<()>, patience: Duration) -> anyhow::Result<()> {
        let (report, drained) = mpsc::sync_channel(1);
        self.handle().spawn(async move {
            let _ = done.await;
            let _ = report.send(());
        });
        drained.recv_timeout(patience + AFTER_DRAIN).context("draining did not end in time")?;
        self.0.end(LOOKUPS + AFTER_DROP).context("the runtime")
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.0.end(AFTER_DROP);
    }
}
