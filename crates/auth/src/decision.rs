//! What whoever decides about a request says: the hub, or the policy file.

use std::sync::Arc;

/// The decider's word. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    Denied { reason: Arc<str> },
}
