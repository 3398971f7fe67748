//! The threads of a tunnel-server: one runtime, on one thread unless more are asked for.
//!
//! A stream belongs to its connection's task, its link's task and its own, which wake each other
//! for every frame. On one thread that is a push to a list; between threads it is a system call,
//! and most of what an echo would cost.

use std::time::Duration;

use anyhow::Context as _;
use net::process::drained;
use net::runtime::{BackgroundRuntime, builder};
use tokio::runtime::Handle;

/// Name look-ups cannot be interrupted: a thread of theirs must not hold up the end.
const LOOKUPS: Duration = Duration::from_secs(1);
/// For the tasks to be dropped when the server is: sockets are closed when its owner goes on.
const AFTER_DROP: Duration = Duration::from_secs(2);

pub struct Runtime(BackgroundRuntime);

// === impl Runtime ===

impl Runtime {
    /// `threads` is at least one.
    pub fn start(threads: usize) -> anyhow::Result<Self> {
        let mut builder = builder(threads);
        builder.thread_name("tunnel-worker");
        BackgroundRuntime::start(builder, "tunnel-runtime", LOOKUPS).map(Self).context("cannot start a runtime")
    }

    pub fn handle(&self) -> &Handle {
        self.0.handle()
    }

    /// Waits for `done`, for as long as draining may take, then ends everything.
    pub fn finish(self, done: tokio::task::JoinHandle<()>, patience: Duration) -> anyhow::Result<()> {
        let _ = drained(self.handle(), done, patience)?; // one that panicked has ended, too
        self.0.end(LOOKUPS + AFTER_DROP).context("the runtime")
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.0.end(AFTER_DROP);
    }
}
