//! What one look at a member's control plane came to.

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Healthy,
    NotReady,
    /// With where it failed, and what to do.
    Unreachable(String),
    /// It did not get as far as the member.
    NotProbed(String),
}
