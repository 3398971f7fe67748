//! How much a client has said.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes received.
#[derive(Clone, Default)]
pub struct Ear(Arc<AtomicU64>);

// === impl Ear ===

impl Ear {
    /// RFC 9113 §3.4.
    const PREFACE: u64 = 24;

    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn heard_preface(&self) -> bool {
        self.bytes() >= Self::PREFACE
    }
}

impl net::heard::Ear for Ear {
    fn heard(&mut self, bytes: &[u8]) {
        // The connection's task alone writes.
        self.0.store(self.bytes() + bytes.len() as u64, Ordering::Relaxed);
    }
}
