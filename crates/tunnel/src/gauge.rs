//! What one relayed stream has carried and holds. Listings of streams show it.

use std::any::Any;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::task::Context;

use net::budget::{self, Counters, Holder};

/// One stream's counters, kept up to date while it runs.
#[derive(Debug, Default)]
pub struct Gauge {
    /// Bytes passed from the side that opened the stream to the side that accepted it.
    pub forth: AtomicU64,
    /// Bytes passed the other way.
    pub back: AtomicU64,
    /// Set by the tunnel-server's registry, and dropped with the gauge, so that the registry learns
    /// that the stream is over.
    pub keeps: OnceLock<Box<dyn Any + Send + Sync>>,
    counters: Counters,
}

/// The limit on bytes that all streams together hold.
///
/// The relay passes it to `splice` and `bridge_within`, which count. A stream that must make room
/// for others ends with [`std::io::ErrorKind::QuotaExceeded`].
pub type Budget = budget::Budget<Arc<Gauge>>;

/// One stream's share of a budget.
pub(crate) type Account = budget::Account<Arc<Gauge>>;

pub(crate) fn account(gauge: Arc<Gauge>, budget: Option<&Budget>) -> Account {
    match budget {
        Some(budget) => budget.open(0, gauge),
        None => Account::unlimited(gauge),
    }
}

// === impl Gauge ===

impl Gauge {
    /// Bytes held now, both ways together.
    pub fn held(&self) -> u64 {
        self.counters.held()
    }

    /// Asks the stream to end, with a reset both ways. For operators who list streams.
    pub fn end(&self) {
        self.counters.end();
    }

    /// See [`Counters::check`].
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, cx: &Context<'_>) -> io::Result<()> {
        self.counters.check(cx)
    }
}

impl Holder for Gauge {
    fn counters(&self) -> &Counters {
        &self.counters
    }
}
