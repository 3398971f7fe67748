//! Bodies that do not end as they should.

/// The member or the network broke off in mid-body. Passed on as an aborted stream, never as a
/// clean end: a list cut short must not look complete.
#[derive(Debug, thiserror::Error)]
#[error("the member's response was cut off: {0}")]
pub struct Truncated(pub String);
