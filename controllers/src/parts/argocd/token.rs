//! The token with which Argo CD reaches members, and its claims.

use register::service_account_token::ServiceAccountToken;
use secrecy::{ExposeSecret as _, SecretString};

use crate::args::Argocd;

/// Life to request, in seconds. The hub may grant less, or more.
pub const LIFE: i64 = 24 * 60 * 60;
/// Most seconds by which the hub's clock may be ahead of this one.
const AHEAD: i64 = 60;
/// A token and its claims.
#[derive(Clone)]
pub struct Token {
    pub text: SecretString,
    pub said: ServiceAccountToken,
}

// === impl Token ===

impl Token {
    /// None: it is not a ServiceAccount's token with an expiry.
    pub fn read(text: SecretString) -> Option<Self> {
        let said = ServiceAccountToken::read(text.expose_secret().as_bytes())?;
        Some(Self { text, said })
    }

    pub fn is_of(&self, argocd: &Argocd) -> bool {
        self.said.subject == subject(argocd)
    }

    /// Whether its claims match a token requested here up to `now_seconds` (since 1970). It is not
    /// verified.
    pub fn is_plausible(&self, argocd: &Argocd, now_seconds: i64) -> bool {
        self.is_of(argocd) && self.said.issued <= now_seconds.saturating_add(AHEAD) && self.said.life() <= LIFE
    }

    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.said.issued > other.said.issued
    }

    /// Seconds from `now_seconds` (since 1970) until the renewal; None: it is due, or belongs to an
    /// account with another `uid`.
    pub fn serves(&self, uid: &str, now_seconds: i64) -> Option<u64> {
        let due = self.said.issued.saturating_add(self.said.life() / 5 * 4);
        let rest = u64::try_from(due.saturating_sub(now_seconds)).ok().filter(|rest| *rest > 0);
        rest.filter(|_| self.said.uid == uid)
    }

    /// Whether the hub still accepts it, due or not.
    pub fn lives(&self, uid: &str, now_seconds: i64) -> bool {
        self.said.uid == uid && self.said.ends > now_seconds
    }

    /// Whether less than a tenth of its life is left.
    pub fn is_near_its_end(&self, now_seconds: i64) -> bool {
        self.said.ends.saturating_sub(now_seconds) < self.said.life() / 10
    }
}

/// The ServiceAccount of the tokens, as the hub names its user.
pub fn subject(argocd: &Argocd) -> String {
    let (namespace, name) = &argocd.account;
    format!("system:serviceaccount:{namespace}:{name}")
}
