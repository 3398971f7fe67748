//! The threads of an agent: one runtime, on one thread unless more are asked for.
//!
//! A link's task and those of its streams wake each other for every frame. On one thread that is a push to a list; between threads it
//! is a system call. Nor is it tokio's runtime for many threads with one worker: there, a task that was just woken goes before those
//! that wait, so that a link would send the first of many answers by itself, and each of the others too.
//!
//! It lives on a thread of its own, so that an agent can be started, stopped and dropped inside of another runtime.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::forward;

/// For what is left of the tasks, and name look-ups, which cannot be interrupted.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Dropped, it ends soon, with all of its tasks.
pub struct Runtime {
    handle: Handle,
    end: CancellationToken,
    ended: mpsc::Receiver<()>,
}

// === impl Runtime ===

impl Runtime {
    /// `threads` is at least one.
    pub fn start(threads: usize) -> anyhow::Result<Self> {
        let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        let runtime = builder
            .worker_threads(threads)
            .thread_name("tunnel-agent")
            // They resolve names: a resolver that hangs must not gather more.
            .max_blocking_threads(forward::THREADS)
            .enable_all()
            .build()
            .context("cannot build a runtime")?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let (report, ended) = mpsc::sync_channel(1);
        let until = end.clone();
        let body = move || {
            runtime.block_on(until.cancelled());
            runtime.shutdown_timeout(LAST_MOMENT);
            let _ = report.send(());
        };
        std::thread::Builder::new().name("tunnel-runtime".into()).spawn(body).context("cannot start a thread")?;
        Ok(Self { handle, end, ended })
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends it with all of its tasks, and returns when they are gone, or after a moment.
    pub fn end(self) {
        self.end.cancel();
        let _ = self.ended.recv_timeout(2 * LAST_MOMENT);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
