//! What a connection's server learns of the heads that were read.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use http::HeaderMap;

use super::block::Mended;
use super::frames::{MARK, cause};
use crate::headers::size::Unfit;

/// Findings in this connection's heads.
#[derive(Clone, Default)]
pub struct Marks(Arc<SharedMarks>);

#[derive(Default)]
struct SharedMarks {
    /// A head has had a mark.
    marked: AtomicBool,
    /// See [`Marks::pinned`].
    pinned: AtomicUsize,
    /// See [`Marks::bytes`].
    bytes: AtomicUsize,
    /// See [`Marks::end`].
    end: OnceLock<&'static str>,
}

// === impl Marks ===

impl Marks {
    /// Removes the mark, if any. Returns why these headers must not be passed on.
    pub fn take(&self, headers: &mut HeaderMap) -> Option<Unfit> {
        if !self.is_any() {
            return None;
        }
        headers.remove(MARK).map(|mark| cause(&mark))
    }

    /// Whether a head has had a mark.
    pub fn is_any(&self) -> bool {
        self.0.marked.load(Ordering::Relaxed)
    }

    /// Bytes of header blocks, over the connection's lifetime, that h2 may keep for fields that it
    /// remembers.
    pub fn pinned(&self) -> usize {
        self.0.pinned.load(Ordering::Relaxed)
    }

    /// Bytes received, including held ones.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Why the connection must end, if [`super::Inbound::ending_with_goodbye`] leaves that to the
    /// server: nothing more is read.
    pub fn end(&self) -> Option<&'static str> {
        self.0.end.get().copied()
    }

    pub(super) fn refuse(&self, why: &'static str) {
        self.0.end.get_or_init(|| why);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn note(&self, mended: &Mended) {
        if mended.is_marked {
            self.0.marked.store(true, Ordering::Relaxed);
        }
        self.0.pinned.fetch_add(mended.pinned, Ordering::Relaxed);
    }
}
