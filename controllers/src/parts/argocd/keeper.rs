//! Keeps the token with which Argo CD reaches members. One token serves all clusters. It is renewed
//! after four fifths of the life that the hub granted, and when its ServiceAccount was created
//! anew.
//!
//! Any writer of Secrets in Argo CD's namespace may have put a token into a Secret. So a token
//! found there is used only if the hub's review confirms that it is one of the account.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec, TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use net::backoff::Backoff;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;
use tokio::time::sleep;

use super::NAME;
use super::inventory::Inventory;
use super::token::{LIFE, Token, subject};
use crate::args::Argocd;
use crate::calls::creating;
use crate::metrics::Metrics;
use crate::parts::hub_calls::{CallError, LeaderClient, now_seconds};
use crate::wakes::Wakes;

/// Most reviews of the token found in the Secrets. After that the keeper requests another token,
/// and all Secrets are written.
const REVIEWS: u32 = 4;
/// Time between two tokens of one account, whatever their lives.
const BETWEEN: Duration = Duration::from_mins(1);
/// Interval of checks of the clock.
const LOOK: Duration = Duration::from_mins(1);

pub struct Keeper<'a> {
    pub hub: LeaderClient,
    pub argocd: &'a Argocd,
    pub inventory: &'a Inventory,
    pub metrics: &'a Metrics,
    pub wakes: &'a Wakes,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the hub issued a token that is not of this ServiceAccount, or does not expire")]
    Unreadable,
}

// === impl Keeper ===

impl Keeper<'_> {
    /// Keeps a valid token. `account` is the UID of the ServiceAccount. Never ends.
    pub async fn keep(&self, mut account: watch::Receiver<Option<String>>) {
        let (mut failures, mut has_begun) = (0, false);
        loop {
            if account.borrow().is_none() {
                // The hub rejects the tokens of a deleted account.
                self.forget_unless(|_| false);
                self.metrics.argocd.token_overdue.set(1);
            }
            // The sender lives as long as this receiver.
            let known = account.wait_for(Option::is_some).await.map(|uid| uid.clone()).unwrap_or_default();
            account.mark_unchanged();
            let uid = known.unwrap_or_default();
            if !std::mem::replace(&mut has_begun, true) {
                self.adopt(&uid).await;
            }
            let wait = self.attend(&uid, &mut failures).await;
            tokio::select! {
                () = sleep(wait) => {}
                _ = account.changed() => {}
            }
        }
    }

    /// Requests a token if one is due. Returns the wait until the next check.
    async fn attend(&self, uid: &str, failures: &mut u32) -> Duration {
        let seconds = now_seconds();
        // A token that is only due stays until there is another.
        self.forget_unless(|token| token.lives(uid, seconds));
        let rest = self.inventory.token().and_then(|token| token.serves(uid, seconds));
        let issued = match rest {
            // Checked again soon, because the clock may be set.
            Some(rest) => Ok(Duration::from_secs(rest).min(LOOK)),
            None => self.issue(uid).await.map(|()| BETWEEN),
        };
        self.metrics.argocd.token_overdue.set(i64::from(issued.is_err()));
        match issued {
            Ok(wait) => {
                *failures = 0;
                wait
            }
            Err(error) => {
                self.failed(&error);
                *failures = failures.saturating_add(1);
                Backoff::OBJECT.wait(failures.saturating_sub(1))
            }
        }
    }

    /// Uses the token in the Secrets if the hub confirms that it is one of the account.
    async fn adopt(&self, uid: &str) {
        let Some(token) = self.inventory.take_candidate().filter(|token| token.lives(uid, now_seconds())) else {
            return;
        };
        for failures in 1..=REVIEWS {
            match self.review(&token, uid).await {
                Ok(true) => {
                    self.inventory.put_token(token);
                    return self.publish();
                }
                Ok(false) => {
                    return tracing::warn!(
                        "the hub did not issue the token in the Secrets for Argo CD, and another is requested: \
                        check which other program writes these Secrets"
                    );
                }
                Err(error) if failures == REVIEWS => {
                    tracing::warn!(%error, "the token in the Secrets for Argo CD was not reviewed: another is \
                        requested");
                }
                Err(_) => sleep(Backoff::OBJECT.wait(failures - 1)).await,
            }
        }
    }

    async fn review(&self, token: &Token, uid: &str) -> Result<bool, CallError> {
        let reviews: Api<TokenReview> = Api::all(self.hub.client.clone());
        let spec = TokenReviewSpec { token: Some(token.text.expose_secret().to_owned()), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        // Without audiences, the hub reviews it for its own.
        let status = self.hub.read(reviews.create(&creating(), &review)).await?.status.unwrap_or_default();
        let user = status.user.unwrap_or_default();
        let is_theirs = user.username == Some(subject(self.argocd)) && user.uid.as_deref() == Some(uid);
        Ok(status.authenticated == Some(true) && is_theirs)
    }

    async fn issue(&self, uid: &str) -> Result<(), TokenError> {
        let (namespace, name) = &self.argocd.account;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.hub.client.clone(), namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(LIFE), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = self.hub.write(accounts.create_token_request(name, &creating(), &request)).await?;
        let text = SecretString::from(answer.status.map(|status| status.token).unwrap_or_default());
        let token = Token::read(text).filter(|token| token.is_of(self.argocd) && token.said.uid == uid);
        self.inventory.put_token(token.ok_or(TokenError::Unreadable)?);
        self.metrics.argocd.issued();
        self.publish();
        Ok(())
    }

    fn failed(&self, error: &TokenError) {
        self.metrics.failed(NAME);
        let (namespace, name) = &self.argocd.account;
        let seconds = now_seconds();
        let Some(token) = self.inventory.token() else {
            tracing::error!(%error, namespace, name, "no token was issued for Argo CD, and there is none: no Secret \
                is written; let the controllers create serviceaccounts/token of it");
            return;
        };
        let ends_within = token.said.ends.saturating_sub(seconds);
        if token.is_near_its_end(seconds) {
            tracing::error!(%error, namespace, name, ends_within, "no token was issued for Argo CD, and the one that \
                its Secrets have ends soon");
        } else {
            tracing::warn!(%error, namespace, name, ends_within, "no token was issued for Argo CD: its Secrets keep \
                the one that they have");
        }
    }

    fn forget_unless(&self, is_kept: impl Fn(&Token) -> bool) {
        if self.inventory.forget_token_unless(is_kept) {
            self.metrics.argocd.token_ends.set(0);
        }
    }

    /// Wakes all clusters.
    fn publish(&self) {
        let ends = self.inventory.token().map_or(0, |token| token.said.ends);
        self.metrics.argocd.token_ends.set(ends);
        for cluster in self.inventory.clusters() {
            self.wakes.push("", &cluster);
        }
    }
}

#[cfg(test)]
pub use self::tests::of_account;
#[cfg(test)]
mod tests;
