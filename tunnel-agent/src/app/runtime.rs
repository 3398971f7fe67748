//! The threads of an agent: one runtime, on one thread unless more are asked for.
//!
//! A link's task and those of its streams wake each other for every frame. On one thread that is a
//! push to a list; between threads it is a system call.

use std::time::Duration;

use anyhow::Context as _;
use net::runtime::{BackgroundRuntime, builder};
use tokio::runtime::Handle;

use crate::forward;

/// For what is left of the tasks, and name look-ups, which cannot be interrupted.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Dropped, it ends soon, with all of its tasks.
pub struct Runtime(BackgroundRuntime);

// === impl Runtime ===

impl Runtime {
    /// `threads` is at least one.
    pub fn start(threads: usize) -> anyhow::Result<Self> {
        let mut builder = builder(threads);
        // Blocking threads resolve names: a resolver that hangs must not gather more.
        builder.thread_name("tunnel-agent").max_blocking_threads(forward::THREADS);
        BackgroundRuntime::start(builder, "tunnel-runtime", LAST_MOMENT).map(Self).context("cannot start a runtime")
    }

    pub fn handle(&self) -> &Handle {
        self.0.handle()
    }

    /// Ends it with all of its tasks, and returns when they are gone, or after a moment.
    pub fn end(self) {
        let _ = self.0.end(2 * LAST_MOMENT);
    }
}
