//! How much a client has sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes received.
#[derive(Clone, Default)]
pub struct ReceivedBytes(Arc<AtomicU64>);

// === impl ReceivedBytes ===

impl ReceivedBytes {
    /// RFC 9113 §3.4.
    const PREFACE: u64 = 24;

    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn has_preface(&self) -> bool {
        self.bytes() >= Self::PREFACE
    }
}

impl net::observed::ActivityObserver for ReceivedBytes {
    fn on_read(&mut self, bytes: &[u8]) {
        // The connection's task alone writes.
        self.0.store(self.bytes() + bytes.len() as u64, Ordering::Relaxed);
    }
}
