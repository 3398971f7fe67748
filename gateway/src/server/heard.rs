//! Whether a client has said anything yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes received, up to the length of the HTTP/2 preface.
#[derive(Clone, Default)]
pub struct Ear(Arc<AtomicUsize>);

// === impl Ear ===

impl Ear {
    /// RFC 9113 §3.4.
    const PREFACE: usize = 24;

    pub fn heard_preface(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::PREFACE
    }
}

impl net::heard::Ear for Ear {
    fn heard(&mut self, bytes: &[u8]) {
        if !self.heard_preface() {
            self.0.fetch_add(bytes.len(), Ordering::Relaxed);
        }
    }
}
