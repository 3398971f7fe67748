//! Counts the bytes that our own responses hold before they are bodies: they count for the request,
//! like the bytes that it receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;

use crate::holding::{Account, Tally};
use crate::hub::{Hub, Meter};
use crate::request_body::RequestBody;

/// Memory per byte of the hub's response while ours is written: the JSON, the objects parsed from
/// it, and our own text.
const TIMES: usize = 3;
/// Memory per byte of what stays of pages: the objects, and our own text.
const KEPT_TIMES: usize = 2;

/// Overhead of a map's entry, besides its text and its value.
pub const ENTRY: usize = 64;

/// A count that can change, and ends when it is dropped.
pub struct Weight(Option<Tally>);

/// Counts the hub's responses, as long as the metered hub client is in use.
struct Answers {
    account: Account,
    counted: AtomicUsize,
}

/// A hub client that counts for `request`.
pub fn asked_by(request: &Request<RequestBody>, hub: &Hub) -> Hub {
    match request.body().account() {
        Some(account) => hub.metered(Arc::new(Answers { account: account.clone(), counted: AtomicUsize::new(0) })),
        None => hub.clone(),
    }
}

// === impl Weight ===

impl Weight {
    pub fn of(request: &Request<RequestBody>) -> Self {
        Self(request.body().account().map(Account::tally))
    }

    /// Sets the bytes held now.
    pub fn set(&mut self, bytes: usize) {
        if let Some(tally) = &mut self.0 {
            tally.set(bytes);
        }
    }
}

// === impl Answers ===

impl Answers {
    fn take(&self, bytes: usize) {
        self.counted.fetch_add(bytes, Ordering::Relaxed);
        self.account.take(bytes);
    }
}

impl Meter for Answers {
    fn received(&self, bytes: usize) {
        self.take(TIMES * bytes);
    }

    fn passed(&self, bytes: usize) {
        self.counted.fetch_sub(TIMES * bytes, Ordering::Relaxed);
        self.account.give(TIMES * bytes);
    }

    fn kept(&self, bytes: usize) {
        self.take(KEPT_TIMES * bytes);
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.account.give(self.counted.load(Ordering::Relaxed));
    }
}
