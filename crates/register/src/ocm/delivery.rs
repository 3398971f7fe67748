//! Which clusters are delivered to from the hub, without an agent: those that say so.

/// The annotation of a `ManagedCluster` that says so.
pub const DELIVERY: &str = "cluster.core.oam.dev/delivery";

/// How a cluster is delivered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From here, unless an agent has applied something for this hub.
    Push,
    /// The same; what an agent applied is taken over, once each time that somebody says so: the
    /// number is another one then. Two who write the same, each over the other, serve nobody.
    Adopt(u64),
}

// === impl Mode ===

impl Mode {
    /// Anything else than the two values means nothing.
    pub fn read(value: Option<&str>) -> Option<Self> {
        match value? {
            "push" => Some(Self::Push),
            "adopt" => Some(Self::Adopt(0)),
            _ => None,
        }
    }

    /// Whether it says the same, however often.
    pub fn is_like(self, other: Self) -> bool {
        matches!((self, other), (Self::Push, Self::Push) | (Self::Adopt(_), Self::Adopt(_)))
    }
}
