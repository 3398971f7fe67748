//! Runs the methods of authentication in order, and combines their opinions.
//!
//! `factory.New` in `k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go`: front
//! proxy, client certificate, bearer token, WebSocket bearer protocol; the first success wins. A
//! request that no method recognizes is anonymous, but one that any method refused is unauthorized:
//! a bad credential never falls back to anonymous.

mod error;

use std::sync::Arc;

use http::HeaderMap;

use self::error::{NotAuthenticated, Rejections};
use crate::authorize::Authorizer;
use crate::clock::Clock;
use crate::credentials::{Credentials, ProtocolToken, bearer};
use crate::metrics::{Method, Metrics};
use crate::peer::Peer;
use crate::review::Opinion;
use crate::token::Tokens;
use crate::trust::Trust;
use crate::user::User;
use crate::{client_certificate, front_proxy};

pub use self::error::AuthenticationError;

/// Authenticates requests. Shared behind an `Arc`.
#[derive(Debug)]
pub struct Authenticator {
    pub(crate) trust: Arc<Trust>,
    pub(crate) tokens: Tokens,
    /// `None` if anonymous requests are turned off.
    pub(crate) anonymous: Option<Arc<User>>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

/// The user of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user whose permissions count.
    pub user: Arc<User>,
    /// The authenticated user that acts as `user`, for the audit log. Does not show impersonation
    /// at a hub in front of this program.
    pub impersonator: Option<Arc<User>>,
}

// === impl Authenticator ===

impl Authenticator {
    /// Whether the CAs of clients' certificates are known. Once known, they stay so: CAs that
    /// become unreadable leave the last valid ones in force.
    pub fn knows_client_authorities(&self) -> bool {
        self.trust.clients().is_some()
    }

    /// Authenticates one request of `peer`. Always removes the identity claims from `headers`:
    /// `Authorization`, front-proxy and impersonation headers, and the bearer subprotocol. (Leaves
    /// headers that `Connection` names.)
    ///
    /// Every user except the anonymous one gets the group `system:authenticated`.
    pub async fn authenticate(&self, peer: &Peer, headers: &mut HeaderMap) -> Result<Arc<User>, AuthenticationError> {
        Ok(self.identify(peer, headers).await?.user)
    }

    /// The same as [`Authenticator::authenticate`], but also returns the acting user if that is
    /// another one.
    pub async fn identify(&self, peer: &Peer, headers: &mut HeaderMap) -> Result<Identity, AuthenticationError> {
        // Reads and removes the claims before it waits, so that a request that is cancelled leaves
        // nothing behind.
        let mut rejections = Rejections::default();
        let (by_certificate, credentials) = self.present(peer, headers, &mut rejections);
        let user = match by_certificate {
            Some(user) => user,
            None => self.by_token(peer, &credentials, rejections).await?,
        };
        let Some(impersonation) = credentials.impersonation else { return Ok(Identity { user, impersonator: None }) };
        let impersonator = Some(Arc::clone(&user));
        // Boxed, because few requests need it, and the others must not carry memory for it.
        let user = Box::pin(impersonation.apply(user, &self.authorizer)).await?;
        Ok(Identity { user, impersonator })
    }

    /// Authenticates a request of `peer` by its client certificate or by a cached review of its
    /// bearer token, without asking the hub. `None` for a request that impersonates. Counts as an
    /// authentication only if `stands` returns a value; otherwise the caller authenticates again.
    pub fn remembered<T>(
        &self,
        peer: &Peer,
        headers: &mut HeaderMap,
        stands: impl FnOnce(Arc<User>) -> Option<T>,
    ) -> Option<T> {
        let credentials = Credentials::take(headers, None);
        if credentials.impersonation.is_some() {
            return None;
        }
        let (method, user) = if let Opinion::User(user) = self.certified(peer, self.now(peer)) {
            (Method::ClientCertificate, user)
        } else {
            let token = credentials.authorization.as_ref().and_then(bearer)?;
            (Method::Bearer, self.tokens.remembered_of(peer, token)?)
        };
        let found = stands(user)?;
        self.metrics.authenticated(method, true);
        Some(found)
    }

    /// The opinion of the method client certificate.
    fn certified(&self, peer: &Peer, now: u64) -> Opinion {
        let clients = self.trust.clients();
        clients.as_ref().map_or(Opinion::None, |bundle| client_certificate::authenticate(peer, bundle, now))
    }

    /// The time for checks of certificates.
    fn now(&self, peer: &Peer) -> u64 {
        if peer.certificates().is_empty() { 0 } else { self.clock.now() }
    }

    /// Whether the connection of `peer` is the hub's front proxy's, before its first request.
    pub fn recognize(&self, peer: &Peer) -> bool {
        let proxy = self.trust.front_proxy();
        proxy.as_ref().is_some_and(|settings| front_proxy::recognize(peer, settings, self.clock.now()).is_ok())
    }

    /// Runs the methods that need no waiting, and returns the claims for the others.
    fn present(
        &self,
        peer: &Peer,
        headers: &mut HeaderMap,
        rejections: &mut Rejections,
    ) -> (Option<Arc<User>>, Credentials) {
        let now = self.now(peer);
        let proxy = self.trust.front_proxy();
        let opinion = match &*proxy {
            Some(settings) => front_proxy::authenticate(peer, headers, settings, now),
            None => Opinion::None,
        };
        let credentials = Credentials::take(headers, proxy.as_ref().map(|settings| &settings.value.headers));
        let user = self
            .weigh(Method::FrontProxy, opinion, rejections)
            .or_else(|| self.weigh(Method::ClientCertificate, self.certified(peer, now), rejections));
        (user, credentials)
    }

    async fn by_token(
        &self,
        peer: &Peer,
        credentials: &Credentials,
        mut rejections: Rejections,
    ) -> Result<Arc<User>, NotAuthenticated> {
        if let Some(token) = credentials.authorization.as_ref().and_then(bearer) {
            let opinion = self.tokens.authenticate_of(peer, token).await;
            if let Some(user) = self.weigh(Method::Bearer, opinion, &mut rejections) {
                return Ok(user);
            }
        }
        let opinion = match &credentials.protocol {
            ProtocolToken::Absent => Opinion::None,
            ProtocolToken::Malformed(why) => Opinion::Refused(Arc::from(*why)),
            ProtocolToken::Token(token) => self.tokens.authenticate(token).await,
        };
        if let Some(user) = self.weigh(Method::WebSocket, opinion, &mut rejections) {
            return Ok(user);
        }
        self.anonymous(rejections)
    }

    fn anonymous(&self, rejections: Rejections) -> Result<Arc<User>, NotAuthenticated> {
        rejections.into_result()?;
        self.metrics.authenticated(Method::Anonymous, self.anonymous.is_some());
        let off = || NotAuthenticated::Refused("no credential, and anonymous requests are disabled".to_owned());
        self.anonymous.clone().ok_or_else(off)
    }

    fn weigh(&self, method: Method, opinion: Opinion, rejections: &mut Rejections) -> Option<Arc<User>> {
        match opinion {
            Opinion::None => return None,
            Opinion::User(user) => {
                self.metrics.authenticated(method, true);
                return Some(user);
            }
            Opinion::Refused(why) => rejections.refused.push(why),
            Opinion::Failed(error) => rejections.failed = Some(error),
        }
        self.metrics.authenticated(method, false);
        None
    }
}

#[cfg(test)]
mod tests;
