//! `cluster_gateway_argocd_*`: the Secrets that this replica keeps for Argo CD.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Operation;

const PREFIX: &str = "cluster_gateway_argocd";

/// Clones share their values.
#[derive(Debug, Clone)]
pub struct Argocd {
    /// Secrets that are up to date.
    pub secrets: Gauge,
    /// Clusters that are gone but still have their Secrets, because too many went at once.
    pub held: Gauge,
    /// Expiry of the token in them, in seconds since 1970; 0 if there is none.
    pub token_ends: Gauge,
    /// 1 while a new token is due but missing.
    pub token_overdue: Gauge,
    writes: Family<OfSecretWrite, Counter>,
    tokens: Counter,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSecretWrite {
    operation: &'static str,
}

// === impl Argocd ===

impl Argocd {
    pub fn register(registry: &mut Registry) -> Self {
        let argocd = Self {
            secrets: Gauge::default(),
            held: Gauge::default(),
            token_ends: Gauge::default(),
            token_overdue: Gauge::default(),
            writes: Family::default(),
            tokens: Counter::default(),
        };
        let Self { secrets, held, token_ends, token_overdue, writes, tokens } = argocd.clone();
        let name = |name: &str| format!("{PREFIX}_{name}");
        registry.register(name("secrets"), "Clusters whose Secret for Argo CD is up to date", secrets);
        registry.register(name("removals_held"), "Secrets kept because too many clusters disappeared at once", held);
        registry.register(
            name("token_expiry_timestamp_seconds"),
            "When the token in the Secrets for Argo CD expires; 0 without one",
            token_ends,
        );
        registry.register(
            name("token_overdue"),
            "1 while another token for Argo CD is due and could not be issued",
            token_overdue,
        );
        registry.register(name("secret_writes"), "Writes of Secrets for Argo CD", writes);
        registry.register(name("tokens_issued"), "Tokens issued for Argo CD", tokens);
        argocd
    }

    pub fn wrote(&self, operation: Operation) {
        self.writes.get_or_create(&OfSecretWrite { operation: operation.as_str() }).inc();
    }

    pub fn issued(&self) {
        self.tokens.inc();
    }

    /// Another replica keeps them, or none.
    pub fn clear(&self) {
        self.secrets.set(0);
        self.held.set(0);
        self.token_ends.set(0);
        self.token_overdue.set(0);
    }
}
