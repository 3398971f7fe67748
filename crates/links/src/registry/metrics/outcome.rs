//! How a registration turned out, and why a link ended: the values of labels.

/// Result of a connection to the agents' listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Linked,
    /// No TLS, or no registration.
    Malformed,
    /// Closed before it had registered, to make room for another connection.
    Shed,
    Unauthenticated,
    Forbidden,
    /// A limit on links was reached.
    Limit,
    Draining,
    /// The hub's review has no result.
    Hub,
    /// Closed before it was linked.
    Lost,
}

/// Why a link ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The agent left in order.
    Left,
    /// The connection broke, or was silent for too long.
    Lost,
    /// The agent sent too many frames that are expensive.
    Frames,
    /// The credential or the permission is no longer valid.
    Revoked,
    /// Reviews of it had no result for too long.
    Unreviewed,
    /// This server shut down.
    Drained,
}

// === impl Outcome ===

impl Outcome {
    pub(super) const ALL: [Self; 9] = [
        Self::Linked,
        Self::Malformed,
        Self::Shed,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::Limit,
        Self::Draining,
        Self::Hub,
        Self::Lost,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Linked => "linked",
            Self::Malformed => "malformed",
            Self::Shed => "shed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::Limit => "limit",
            Self::Draining => "draining",
            Self::Hub => "hub",
            Self::Lost => "lost",
        }
    }
}

// === impl Ended ===

impl Ended {
    pub(super) const ALL: [Self; 6] =
        [Self::Left, Self::Lost, Self::Frames, Self::Revoked, Self::Unreviewed, Self::Drained];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Lost => "lost",
            Self::Frames => "frames",
            Self::Revoked => "revoked",
            Self::Unreviewed => "unreviewed",
            Self::Drained => "drained",
        }
    }
}
