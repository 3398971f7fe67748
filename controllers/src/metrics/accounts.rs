//! Of `ManagedServiceAccounts` that are filled here: those of Open Cluster Management's own add-on
//! are not counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::PREFIX;

/// Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    states: Family<OfState, Gauge>,
    tokens: Counter,
}

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountState {
    /// It has a token.
    Filled,
    /// For its cluster, or for the hub.
    Waiting,
    /// Its condition says why.
    Failed,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfState {
    state: &'static str,
}

// === impl AccountState ===

impl AccountState {
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
            accounts.states.clone(),
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

    /// One is no longer in a state, and in another now.
    pub fn moved(&self, before: Option<AccountState>, now: Option<AccountState>) {
        let gauge = |state: AccountState| self.states.get_or_create_owned(&OfState { state: state.as_str() });
        if let Some(state) = before {
            gauge(state).dec();
        }
        if let Some(state) = now {
            gauge(state).inc();
        }
    }

    /// Another replica writes now.
    pub fn clear(&self) {
        self.states.clear();
    }
}
