//! The threads of a gateway: one for all tasks except requests, and one per serving core.
//!
//! Each has its own runtime, without work stealing between them: measured, that costs a third less
//! per request.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use net::process::drained;
use net::words;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::server::Server;

const LOOKUPS: Duration = Duration::from_secs(1);

/// One port on one core.
pub type Listening = (std::net::TcpListener, Server);

pub struct Threads {
    control: Handle,
    cores: Vec<mpsc::Sender<Vec<Listening>>>,
    running: Vec<JoinHandle<()>>,
    /// Ends all runtimes when cancelled.
    end: CancellationToken,
}

// === impl Threads ===

impl Threads {
    pub fn start(cores: usize) -> anyhow::Result<Self> {
        let end = CancellationToken::new();
        let mut running = Vec::new();
        let (report, started) = mpsc::sync_channel(1);
        running.push(spawn("control".into(), end.clone(), move |runtime, end| {
            let _ = report.send(runtime.handle().clone());
            runtime.block_on(end.cancelled());
        })?);
        let control = started.recv().context("the control thread did not start")?;
        let mut senders = Vec::new();
        for core in 0..cores {
            let (sender, receiver) = mpsc::channel();
            running.push(spawn(format!("core-{core}"), end.clone(), move |runtime, end| {
                serve(runtime, end, &receiver);
            })?);
            senders.push(sender);
        }
        Ok(Self { control, cores: senders, running, end })
    }

    /// The runtime for watches, reviews and timers.
    pub fn control(&self) -> &Handle {
        &self.control
    }

    /// Passes a core its listeners.
    pub fn serve(&mut self, core: usize, listening: Vec<Listening>) {
        // A thread that has ended does not listen; a later join reports why.
        let _ = self.cores[core].send(listening);
    }

    /// Waits for `done`, ends the runtimes and waits for the threads.
    pub fn join(mut self, done: tokio::task::JoinHandle<()>, patience: Duration) -> anyhow::Result<()> {
        let _ = drained(&self.control, done, patience)?; // a task that panicked has ended, too
        self.end.cancel();
        for thread in self.running.drain(..) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            thread.join().map_err(|_| anyhow!("thread {name} panicked"))?;
        }
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

fn spawn(
    name: String,
    end: CancellationToken,
    body: impl FnOnce(&tokio::runtime::Runtime, &CancellationToken) + Send + 'static,
) -> anyhow::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build().context("cannot build a runtime")?;
    std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            body(&runtime, &end);
            // Name look-ups cannot be interrupted, and their thread must not delay the end.
            runtime.shutdown_timeout(LOOKUPS);
        })
        .context("cannot start a thread")
}

fn serve(runtime: &tokio::runtime::Runtime, end: &CancellationToken, work: &mpsc::Receiver<Vec<Listening>>) {
    let Ok(listening) = work.recv() else { return };
    runtime.block_on(async move {
        for (listener, server) in listening {
            match TcpListener::from_std(listener) {
                Ok(listener) => drop(tokio::spawn(server.run(listener))),
                Err(error) => tracing::error!(error = words::io(&error), "cannot listen on this core"),
            }
        }
        // Connections are tasks of this runtime, so it runs until everything has drained.
        end.cancelled().await;
    });
}
