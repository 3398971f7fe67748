//! The token that Argo CD reaches members with, and what it says of itself.

use register::service_account_token::ServiceAccountToken;
use secrecy::{ExposeSecret as _, SecretString};

use crate::args::Argocd;

/// Seconds that a token is asked for. The hub may grant less, or more.
pub const LIFE: i64 = 24 * 60 * 60;
/// Seconds by which the hub's clock may be ahead of this one.
const AHEAD: i64 = 60;
/// A token, and what it says of itself.
#[derive(Clone)]
pub struct Token {
    pub text: SecretString,
    pub said: ServiceAccountToken,
}

// === impl Token ===

impl Token {
    /// None: it is no token of a ServiceAccount that ends.
    pub fn read(text: SecretString) -> Option<Self> {
        let said = ServiceAccountToken::read(text.expose_secret().as_bytes())?;
        Some(Self { text, said })
    }

    pub fn is_of(&self, argocd: &Argocd) -> bool {
        self.said.subject == subject(argocd)
    }

    /// Whether it looks like one that was asked for here until `now` (in seconds since 1970). It is
    /// not verified.
    pub fn is_plausible(&self, argocd: &Argocd, now_seconds: i64) -> bool {
        self.is_of(argocd) && self.said.issued <= now_seconds.saturating_add(AHEAD) && self.said.life() <= LIFE
    }

    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.said.issued > other.said.issued
    }

    /// For how many seconds from `now` (since 1970) it need not be renewed; none: it is due, or not
    /// of the account with this `uid`.
    pub fn serves(&self, uid: &str, now_seconds: i64) -> Option<u64> {
        let due = self.said.issued.saturating_add(self.said.life() / 5 * 4);
        let rest = u64::try_from(due.saturating_sub(now_seconds)).ok().filter(|rest| *rest > 0);
        rest.filter(|_| self.said.uid == uid)
    }

    /// Whether the hub takes it still, due or not.
    pub fn lives(&self, uid: &str, now_seconds: i64) -> bool {
        self.said.uid == uid && self.said.ends > now_seconds
    }

    /// Whether less than a tenth of its life is left.
    pub fn is_near_its_end(&self, now_seconds: i64) -> bool {
        self.said.ends.saturating_sub(now_seconds) < self.said.life() / 10
    }
}

/// The ServiceAccount whose tokens they are, as the hub names it.
pub fn subject(argocd: &Argocd) -> String {
    let (namespace, name) = &argocd.account;
    format!("system:serviceaccount:{namespace}:{name}")
}
