//! The signals that end a program.

use std::io;

use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::runtime::{EndedEarly, block_on};

/// A shell's exit code for an interrupted program (128 + SIGINT).
const INTERRUPTED: i32 = 130;

/// SIGTERM and SIGINT. One value receives all of them, so that none is lost between the first and
/// the second.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

pub(super) fn watch_signals(runtime: &Handle) -> io::Result<Signals> {
    block_on(runtime, async { Signals::new() }).map_err(io::Error::other)?
}

/// Blocks until the first signal. The next one ends the process.
pub(super) fn until_signalled(
    runtime: &Handle,
    mut signals: Signals,
    last: impl FnOnce() + Send + 'static,
) -> Result<(), EndedEarly> {
    let (mut signals, first) = block_on(runtime, async move {
        let first = signals.next().await;
        (signals, first)
    })?;
    tracing::info!(signal = first, "shutting down");
    runtime.spawn(async move {
        signals.next().await;
        last();
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

// === impl Signals ===

impl Signals {
    /// From now on the signals no longer end the process. Needs a runtime.
    pub fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns the next signal's name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
