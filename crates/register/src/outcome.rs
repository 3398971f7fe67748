//! The result of one probe of a member's control plane.

/// The outcome of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Healthy,
    NotReady,
    /// With where it failed, and a remedy.
    Unreachable(String),
    /// The probe did not reach the member.
    NotProbed(String),
}
