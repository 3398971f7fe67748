//! Runtimes on their own threads, controlled from other threads.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// The task gave no result: it panicked, or its runtime has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the task ended early")]
pub struct EndedEarly;

/// A runtime did not end after it was shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotEnded {
    #[error("its thread panicked")]
    Panicked,
    #[error("it has not ended in time")]
    Late,
}

/// A runtime on its own thread, so that its owner can be started, stopped and dropped inside
/// another runtime. A drop shuts it down without waiting, unless it is [awaited].
///
/// [awaited]: BackgroundRuntime::awaited
#[derive(Debug)]
pub struct BackgroundRuntime {
    handle: Handle,
    end: CancellationToken,
    ended: mpsc::Receiver<()>,
    /// How long a drop waits for its end.
    patience: Duration,
}

/// Runs `future` on the runtime of `handle` and waits for it, from any thread except that runtime's
/// own.
pub fn block_on<F>(handle: &Handle, future: F) -> Result<F::Output, EndedEarly>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (report, result) = mpsc::sync_channel(1);
    handle.spawn(async move {
        let _ = report.send(future.await); // the caller waits below
    });
    result.recv().map_err(|_| EndedEarly)
}

/// A builder for one thread, or for many. One thread is not tokio's multi-thread runtime with one
/// worker: that runs a woken task before those that wait, so a connection would send the first of
/// many responses by itself, and each of the others too.
pub fn builder(threads: usize) -> Builder {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.worker_threads(threads).enable_all();
    builder
}

// === impl BackgroundRuntime ===

impl BackgroundRuntime {
    /// Runs the runtime of `builder` on a thread called `name`. At its end, work that cannot be
    /// interrupted gets `last_moment`, because name look-ups must not delay the end.
    ///
    /// # Errors
    /// If the system gives no thread or no poller.
    pub fn start(mut builder: Builder, name: &str, last_moment: Duration) -> io::Result<Self> {
        let runtime = builder.build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let (report, ended) = mpsc::sync_channel(1);
        let until = end.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(until.cancelled());
            runtime.shutdown_timeout(last_moment);
            let _ = report.send(()); // there may be no waiter left
        })?;
        Ok(Self { handle, end, ended, patience: Duration::ZERO })
    }

    /// A runtime for programs that relay bytes, on `threads` called `name`, usually one. Their
    /// connection tasks and stream tasks wake each other for every frame. On one thread that is a
    /// push to a list, but between threads it is a system call, and most of the cost of an echo.
    /// Names are resolved on up to `blocking` more threads.
    ///
    /// # Errors
    /// The same as of [`BackgroundRuntime::start`].
    pub fn of_relay(name: &str, threads: usize, blocking: usize, last_moment: Duration) -> io::Result<Self> {
        let mut builder = builder(threads);
        builder.thread_name(name).max_blocking_threads(blocking);
        Self::start(builder, "tunnel-runtime", last_moment)
    }

    /// A drop waits for its end, up to `patience`, so that sockets are closed before its owner
    /// continues.
    #[must_use]
    pub fn awaited(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends the runtime with all its tasks. Returns when they are dropped, so that their sockets
    /// are closed, or after `patience`.
    pub fn end(&self, patience: Duration) -> Result<(), NotEnded> {
        self.end.cancel();
        self.ended.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Disconnected => NotEnded::Panicked,
            RecvTimeoutError::Timeout => NotEnded::Late,
        })
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        let _ = self.end(self.patience);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_result_comes_over_and_an_early_end_is_told() {
        for threads in [1, 2] {
            let runtime = BackgroundRuntime::start(builder(threads), "test", LONG).unwrap();
            assert_eq!(block_on(runtime.handle(), async { 7 }), Ok(7));
            assert_eq!(runtime.end(LONG), Ok(()));
            assert_eq!(block_on(runtime.handle(), async { 7 }), Err(EndedEarly));
        }
    }

    #[test]
    fn its_tasks_are_gone_when_it_has_ended() {
        let runtime = BackgroundRuntime::start(builder(1), "test", LONG).unwrap();
        let (held, gone) = mpsc::sync_channel::<()>(0);
        block_on(runtime.handle(), async move { drop(tokio::spawn(holding(held))) }).unwrap();
        assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Empty));
        assert_eq!(runtime.end(LONG), Ok(()));
        assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn one_that_cannot_end_is_late() {
        let runtime = BackgroundRuntime::start(builder(1), "test", LONG).unwrap();
        let (go_on, wait) = mpsc::sync_channel::<()>(0);
        let (begun, begin) = mpsc::sync_channel(1);
        runtime.handle().spawn(async move {
            begun.send(()).unwrap();
            wait.recv().unwrap_err(); // as no task should
        });
        begin.recv().unwrap();
        assert_eq!(runtime.end(Duration::from_millis(10)), Err(NotEnded::Late));
        drop(go_on);
        assert_eq!(runtime.end(LONG), Ok(()));
    }

    async fn holding(_held: mpsc::SyncSender<()>) {
        std::future::pending::<()>().await;
    }
}
