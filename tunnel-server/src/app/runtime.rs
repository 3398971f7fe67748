//! The threads of a tunnel-server: one runtime, on one thread unless more are asked for.
//!
//! A stream belongs to its connection's task, its link's task and its own, which wake each other for every frame. On one thread that is
//! a push to a list; between threads it is a system call, and most of what an echo would cost.
//!
//! It lives on a thread of its own, so that a server can be started, stopped and dropped inside of another runtime.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// After the time given for draining, what has not ended is left behind.
const AFTER_DRAIN: Duration = Duration::from_secs(5);
/// Name look-ups cannot be interrupted: a thread of theirs must not hold up the end.
const LOOKUPS: Duration = Duration::from_secs(1);
/// For the tasks to be dropped when the server is: sockets are closed when its owner goes on.
const AFTER_DROP: Duration = Duration::from_secs(2);

pub struct Runtime {
    handle: Handle,
    end: CancellationToken,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

// === impl Runtime ===

impl Runtime {
    /// `threads` is at least one.
    pub fn start(threads: usize) -> anyhow::Result<Self> {
        let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        let runtime = builder.worker_threads(threads).thread_name("tunnel-worker").enable_all().build();
        let runtime = runtime.context("cannot build a runtime")?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let (report, ended) = mpsc::sync_channel(1);
        let until = end.clone();
        let body = move || {
            runtime.block_on(until.cancelled());
            runtime.shutdown_timeout(LOOKUPS);
            let _ = report.send(());
        };
        let thread = std::thread::Builder::new().name("tunnel-runtime".into()).spawn(body);
        let thread = thread.context("cannot start a thread")?;
        Ok(Self { handle, end, ended, thread: Some(thread) })
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for `done`, for as long as draining may take, then ends everything.
    pub fn finish(mut self, done: tokio::task::JoinHandle<()>, patience: Duration) -> anyhow::Result<()> {
        let (report, drained) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = done.await;
            let _ = report.send(());
        });
        drained.recv_timeout(patience + AFTER_DRAIN).context("draining did not end in time")?;
        self.end.cancel();
        let thread = self.thread.take().expect("taken only here");
        thread.join().map_err(|_| anyhow!("the runtime's thread panicked"))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.end.cancel();
        if self.thread.is_some() {
            let _ = self.ended.recv_timeout(AFTER_DROP);
        }
    }
}
