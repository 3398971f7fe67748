//! Authorization without a hub: a policy file in place of RBAC.
//!
//! ```yaml
//! rules:
//! - users: [alice]            # a user matches by name or by any of its groups
//!   groups: [developers]
//!   clusters: [blue, green]   # or ["*"]
//!   verbs: [get, create]      # or ["*"]; reading means get, whatever the member's own verb is
//! ```
//!
//! A rule grants its verbs on `clustergateways/proxy` of its clusters. It also grants reads: `get`
//! of those clusters and their health, and, if its clusters are `"*"`, list and watch of all.
//! Discovery is open to all authenticated users, as by RBAC's `system:discovery`. Nothing else is
//! granted, except to `system:masters`, which may do everything (decided before this module).
//!
//! If proxied requests get a second review, for what they do on the member, the same rules are
//! checked with the member's verb: `list` and `watch` count as `get`, and `deletecollection` as
//! `delete`.

mod policy;

use std::sync::Arc;

use api::access::{Attributes, Verb};
use arc_swap::ArcSwap;

use crate::review::Decision;
use crate::user::{ALL_AUTHENTICATED, User};

pub(crate) use self::policy::Policy;
pub use self::policy::PolicyError;

const CLUSTERS: &str = "clustergateways";
const VIRTUAL_CLUSTERS: &str = "virtualclusters";
/// Paths that RBAC's `system:discovery` opens: exact, or a subtree if it ends in a slash.
const DISCOVERY: [&str; 9] =
    ["/api", "/api/", "/apis", "/apis/", "/openapi", "/openapi/", "/version", "/version/", "/healthz"];

/// The policy in force. A new one takes effect with the next request.
#[derive(Debug, Clone)]
pub(crate) struct Standalone {
    policy: Arc<ArcSwap<Policy>>,
}

// === impl Standalone ===

impl Standalone {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(ArcSwap::from_pointee(policy)) }
    }

    pub(crate) fn replace(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    pub(crate) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        let allowed = match attributes {
            Attributes::NonResource { path, verb } => {
                user.is_in(ALL_AUTHENTICATED) && matches!(&**verb, "get" | "head") && is_discovery(path)
            }
            Attributes::Resource(resource) => self.policy.load().allows(user, resource),
        };
        decision(allowed)
    }

    /// The same as [`Standalone::decide`], for what a request does on the member `cluster`.
    pub(crate) fn decide_proxied(&self, user: &User, cluster: &str, attributes: &Attributes) -> Decision {
        let verb = match attributes {
            Attributes::Resource(resource) => match resource.verb {
                Verb::List | Verb::Watch => Verb::Get,
                Verb::DeleteCollection => Verb::Delete,
                verb => verb,
            },
            Attributes::NonResource { verb, .. } => match &**verb {
                "get" | "head" => Verb::Get,
                "post" => Verb::Create,
                "put" => Verb::Update,
                "patch" => Verb::Patch,
                "delete" => Verb::Delete,
                _ => Verb::None,
            },
        };
        decision(self.policy.load().grants(user, cluster, verb))
    }
}

fn decision(allowed: bool) -> Decision {
    if allowed {
        return Decision::Allowed;
    }
    Decision::Denied { reason: Arc::from("no rule of the standalone policy allows it") }
}

fn is_discovery(path: &str) -> bool {
    DISCOVERY.iter().any(|open| path == *open || (open.ends_with('/') && path.starts_with(open)))
}

#[cfg(test)]
mod tests;
