//! The state of each `ManagedServiceAccount`, for metrics and for the wait before the next try.

use std::collections::HashMap;
use std::time::Duration;

use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::metrics::{AccountState, Accounts};
use crate::wakes::Key;

/// Time between two tokens of one account, so that a member that keeps deleting `ServiceAccounts`
/// does not keep the hub writing.
pub const BETWEEN_TOKENS: Duration = Duration::from_secs(5);

pub struct States {
    known: Mutex<HashMap<Key, Attempts>>,
    metrics: Accounts,
}

#[derive(Default)]
struct Attempts {
    failures: u32,
    issued: Option<Instant>,
}

// === impl States ===

impl States {
    pub fn new(metrics: Accounts) -> Self {
        Self { known: Mutex::default(), metrics }
    }

    /// The account has a valid token.
    pub fn filled(&self, key: &Key) {
        self.change(key, AccountState::Filled, |known| known.failures = 0);
    }

    /// A token was issued now.
    pub fn issued(&self, key: &Key) {
        self.change(key, AccountState::Filled, |known| known.issued = Some(Instant::now()));
        self.metrics.issued();
    }

    /// Time in which no token is requested.
    pub fn rests(&self, key: &Key) -> Option<Duration> {
        let known = self.known.lock();
        let rest = BETWEEN_TOKENS.checked_sub(known.get(key)?.issued?.elapsed())?;
        (!rest.is_zero()).then_some(rest)
    }

    /// Number of failures in a row.
    pub fn failures(&self, key: &Key) -> u32 {
        self.known.lock().get(key).map_or(0, |known| known.failures)
    }

    /// Records a failure. Returns the wait before the next try.
    pub fn failed(&self, key: &Key, state: AccountState) -> Duration {
        let mut wait = Backoff::OBJECT.longest;
        self.change(key, state, |known| {
            wait = Backoff::OBJECT.wait(known.failures);
            known.failures = known.failures.saturating_add(1);
        });
        wait
    }

    /// Forgets an account that is gone, or that another agent fills.
    pub fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
        self.metrics.forget(key);
    }

    /// Forgets the accounts for which `is_there` is false.
    pub fn retain(&self, is_there: impl Fn(&Key) -> bool) {
        let gone: Vec<Key> = self.known.lock().keys().filter(|key| !is_there(key)).cloned().collect();
        for key in gone {
            self.forget(&key);
        }
    }

    fn change(&self, key: &Key, state: AccountState, change: impl FnOnce(&mut Attempts)) {
        change(self.known.lock().entry(key.clone()).or_default());
        self.metrics.settle(key, state);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_counted_once_and_waits_longer_each_time() {
        let mut registry = Registry::default();
        let states = States::new(Accounts::register(&mut registry));
        let [one, two] = ["a", "b"].map(|name| ("c1".to_owned(), name.to_owned()));
        let waits: Vec<_> = (0..10).map(|_| states.failed(&one, AccountState::Waiting).as_secs_f64()).collect();
        assert!(waits[0] <= 1.0 && waits[9] >= 150.0 && waits[9] <= 300.0, "{waits:?}");
        states.issued(&two);
        states.filled(&one);
        assert_eq!((states.failures(&one), states.rests(&one)), (0, None));
        assert_eq!(states.rests(&two), Some(BETWEEN_TOKENS));
        tokio::time::advance(BETWEEN_TOKENS).await;
        assert_eq!(states.rests(&two), None);
        states.retain(|key| *key == one);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("managed_serviceaccounts{state=\"filled\"} 1"), "{text}");
        assert!(text.contains("managed_serviceaccounts{state=\"waiting\"} 0"), "{text}");
        assert!(text.contains("managed_serviceaccount_tokens_total 1"), "{text}");
    }
}
