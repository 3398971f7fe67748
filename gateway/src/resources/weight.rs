//! What our own answers hold before they are bodies: it counts for the request, like what others
//! send it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;

use crate::holding::{Account, Tally};
use crate::hub::{Hub, Meter};
use crate::request_body::RequestBody;

/// What is made of a byte of the hub's answer while ours is written: the JSON, the objects that are
/// read of it, and our own words.
const TIMES: usize = 3;

/// Of an entry of a map, beside its text and its value.
pub const ENTRY: usize = 64;

/// Recounted as it changes, and gone with it.
pub struct Weight(Option<Tally>);

/// Of what a hub answers, for as long as the hub that reports to it is in use.
struct Answers {
    account: Account,
    counted: AtomicUsize,
}

/// The hub, as `request` asks it.
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

    /// So many bytes are held now.
    pub fn set(&mut self, bytes: usize) {
        if let Some(tally) = &mut self.0 {
            tally.set(bytes);
        }
    }
}

// === impl Answers ===

impl Meter for Answers {
    fn received(&self, bytes: usize) {
        self.counted.fetch_add(TIMES * bytes, Ordering::Relaxed);
        self.account.take(TIMES * bytes);
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.account.give(self.counted.load(Ordering::Relaxed));
    }
}
