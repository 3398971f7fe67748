//! Metrics of the `ManagedServiceAccounts` that this program fills: those of Open Cluster
//! Management's own add-on are not counted.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::PREFIX;
use super::tally::{ObjectState, States};
use crate::wakes::Key;

/// Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    states: States<AccountState>,
    tokens: Counter,
}

/// The state of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountState {
    /// It has a token.
    Filled,
    /// Waits for its cluster, or for the hub.
    Waiting,
    /// Its condition says why.
    Failed,
}

// === impl AccountState ===

impl ObjectState for AccountState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Filled => "filled",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

// === impl Accounts ===

impl Accounts {
    pub fn register(registry: &mut Registry) -> Self {
        let accounts = Self::default();
        registry.register(
            format!("{PREFIX}_managed_serviceaccounts"),
            "ManagedServiceAccounts, by outcome",
            accounts.states.family(),
        );
        registry.register(
            format!("{PREFIX}_managed_serviceaccount_tokens"),
            "Tokens that were issued for ManagedServiceAccounts",
            accounts.tokens.clone(),
        );
        accounts
    }

    pub fn issued(&self) {
        self.tokens.inc();
    }

    /// Sets the state of an account.
    pub fn settle(&self, key: &Key, state: AccountState) {
        self.states.settle(key.clone(), state);
    }

    pub fn forget(&self, key: &Key) {
        self.states.forget(key);
    }

    /// Another replica writes now.
    pub fn clear(&self) {
        self.states.clear();
    }
}
