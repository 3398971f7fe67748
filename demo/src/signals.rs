//! Signals that end a demo: Ctrl-C, `kill`, or the terminal closing.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The three of them.
#[derive(Debug)]
pub struct Signals([Signal; 3]);

// === impl Signals ===

impl Signals {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        let [interrupt, terminate, hangup] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Ok(Self([signal(interrupt)?, signal(terminate)?, signal(hangup)?]))
    }

    /// Waits for the next.
    pub async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
