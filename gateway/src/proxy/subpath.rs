//! The second review of a proxied request (`--authorize-proxy-subpath`): may the caller do on the
//! hub what it asks of the member?
//!
//! The review covers the request as the member will read it, from the very bytes that are
//! forwarded. The hub's RBAC then holds for members too. It treats the member's objects as the
//! hub's own, so names and namespaces must mean the same everywhere.

use std::sync::Arc;

use api::route::{BadPath, ProxyRoute};
use auth::{AuthorizationError, User};
use tokio::time::Instant;

use crate::error::Error;
use crate::needs::RequestNeeds;

/// Fails unless `user` may do this on the member. A path with more than one reading is refused for
/// every user.
///
/// Comes before the cluster is looked up, like every check: a user without permission does not
/// learn which clusters exist.
pub async fn authorize(gateway: &RequestNeeds, user: Arc<User>, route: &ProxyRoute<'_>) -> Result<(), Error> {
    if !route.asks.can_be_decoded() {
        return Err(Error::BadPath(BadPath::Escape));
    }
    if !route.asks.has_one_reading() {
        return Err(Error::BadPath(BadPath::Slashes));
    }
    let attributes = route.asks.attributes();
    let cluster = route.cluster.as_str();
    let started = Instant::now();
    let reviewed = gateway.authorizer.authorize_proxied(user, cluster, attributes).await;
    let answered = matches!(reviewed, Ok(_) | Err(AuthorizationError::Forbidden { .. }));
    gateway.metrics.escalation_reviewed(answered, started.elapsed());
    match reviewed {
        Ok(_permit) => Ok(()),
        Err(AuthorizationError::Forbidden { user, attributes, reason }) => {
            let reason = describe_denial(cluster, &reason);
            Err(AuthorizationError::Forbidden { user, attributes, reason }.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn describe_denial(cluster: &str, reason: &str) -> String {
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("the hub does not allow it for requests to cluster {cluster}{colon}{reason}")
}
