//! The token that Argo CD reaches members with: one for all, issued anew after four fifths of the
//! life that the hub granted, and when its ServiceAccount is another one.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use net::backoff::Backoff;
use register::service_account_token::ServiceAccountToken;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;
use tokio::time::sleep;

use super::NAME;
use super::state::State;
use crate::args::Argocd;
use crate::calls::creating;
use crate::metrics::Metrics;
use crate::parts::hub::{CallError, Hub, now};
use crate::wakes::Wakes;

/// Seconds that a token is asked for. The hub may grant less, or more.
const LIFE: i64 = 24 * 60 * 60;
/// After a token that could not be issued.
const AGAIN: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// Between two tokens of one account, whatever their lives are.
const BETWEEN: Duration = Duration::from_mins(1);
/// Between two looks at the clock.
const LOOK: Duration = Duration::from_mins(1);

/// A token, and what it says of itself.
#[derive(Clone)]
pub struct Token {
    pub text: SecretString,
    said: ServiceAccountToken,
}

pub struct Keeper<'a> {
    pub hub: Hub,
    pub argocd: &'a Argocd,
    pub state: &'a State,
    pub metrics: &'a Metrics,
    pub wakes: &'a Wakes,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("what the hub issued is no token of this ServiceAccount that ends")]
    Unreadable,
}

// === impl Token ===

impl Token {
    /// None: it is no token of a ServiceAccount that ends.
    pub fn read(text: SecretString) -> Option<Self> {
        let said = ServiceAccountToken::read(text.expose_secret().as_bytes())?;
        Some(Self { text, said })
    }

    pub fn is_of(&self, argocd: &Argocd) -> bool {
        let (namespace, name) = &argocd.account;
        self.said.subject == format!("system:serviceaccount:{namespace}:{name}")
    }

    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.said.issued > other.said.issued
    }

    /// For how many seconds from `now` (since 1970) it need not be renewed; none: it is due, or not
    /// of the account with this `uid`.
    fn serves(&self, uid: &str, now: i64) -> Option<u64> {
        let due = self.said.issued.saturating_add(self.said.life() / 5 * 4);
        let rest = u64::try_from(due.saturating_sub(now)).ok().filter(|rest| *rest > 0);
        rest.filter(|_| self.said.uid == uid)
    }
}

// === impl Keeper ===

impl Keeper<'_> {
    /// Sees to it that there is one. `account` is the UID of the ServiceAccount. Never ends.
    pub async fn keep(&self, mut account: watch::Receiver<Option<String>>) {
        let mut failures = 0;
        loop {
            // The sender lives as long as this does.
            let known = account.wait_for(Option::is_some).await.map(|uid| uid.clone()).unwrap_or_default();
            account.mark_unchanged();
            let uid = known.unwrap_or_default();
            let wait = if let Some(rest) = self.serves(&uid) {
                failures = 0;
                // The clock may be set.
                rest.min(LOOK)
            } else {
                match self.issue(&uid).await {
                    Ok(()) => BETWEEN,
                    Err(error) => {
                        self.metrics.failed(NAME);
                        let (namespace, name) = &self.argocd.account;
                        tracing::warn!(%error, namespace, name, "no token was issued for Argo CD");
                        failures += 1;
                        AGAIN.wait(failures - 1)
                    }
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                _ = account.changed() => {}
            }
        }
    }

    /// For how long the token that Secrets have, or one that was issued, serves still.
    fn serves(&self, uid: &str) -> Option<Duration> {
        let seconds = now() / 1000;
        let is_news = self.state.settle_token(|token| token.serves(uid, seconds).is_some());
        if is_news {
            self.tell();
        }
        self.state.token()?.serves(uid, seconds).map(Duration::from_secs)
    }

    async fn issue(&self, uid: &str) -> Result<(), TokenError> {
        let (namespace, name) = &self.argocd.account;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.hub.client.clone(), namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(LIFE), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = self.hub.write(accounts.create_token_request(name, &creating(), &request)).await?;
        let text = SecretString::from(answer.status.map(|status| status.token).unwrap_or_default());
        let token = Token::read(text).filter(|token| token.is_of(self.argocd) && token.said.uid == uid);
        self.state.put_token(token.ok_or(TokenError::Unreadable)?);
        self.metrics.argocd.issued();
        self.tell();
        Ok(())
    }

    /// All Secrets are looked at.
    fn tell(&self) {
        let ends = self.state.token().map_or(0, |token| token.said.ends);
        self.metrics.argocd.token_ends.set(ends);
        for cluster in self.state.clusters() {
            self.wakes.push("", &cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    fn token(subject: &str, uid: &str, issued: i64, life: i64) -> Token {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({"sub": subject, "iat": issued, "exp": issued + life,
            "kubernetes.io": {"serviceaccount": {"uid": uid}}});
        let text = format!("{}.{}.{}", part(json!({"alg": "none"})), part(claims), part(json!("signature")));
        Token::read(SecretString::from(text)).unwrap()
    }

    #[test]
    fn a_token_serves_for_four_fifths_of_its_life() {
        let argocd = Argocd { namespace: "argocd".into(), account: ("argocd".into(), "deployer".into()) };
        let one = token("system:serviceaccount:argocd:deployer", "u1", 1_000, 500);
        assert!(one.is_of(&argocd) && !token("system:serviceaccount:argocd:other", "u1", 0, 9).is_of(&argocd));
        assert_eq!((one.serves("u1", 1_399), one.serves("u1", 1_400)), (Some(1), None), "of 500 s, 400");
        assert_eq!(one.serves("u2", 1_001), None, "of another account of that name");
        assert!(token("s", "u1", 1_001, 9).is_newer_than(&one));
    }
}
