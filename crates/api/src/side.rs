//! Where a request failed, in the words for logs, metrics and responses.

/// Where a request failed, from the gateway's view: the side that has to act, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The request itself, the caller's permissions, or the client.
    Caller,
    /// The hub's API server, or a server registered there.
    Hub,
    /// The gateway's own limits and rules.
    Gateway,
    /// The hops to a member that is not dialled: tunnel-servers and agents.
    Tunnel,
    /// The member, the direct way to it, or its credential.
    Member,
}

// === impl Side ===

impl Side {
    /// All sides, starting with the caller.
    pub const ALL: [Self; 5] = [Self::Caller, Self::Hub, Self::Gateway, Self::Tunnel, Self::Member];

    /// The name in logs, audit events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Tunnel => "tunnel",
            Self::Member => "member",
        }
    }

    /// The `reason` of an entry in `status.details.causes`. A caller is not a hop.
    pub fn hop(self) -> Option<&'static str> {
        match self {
            Self::Caller => None,
            Self::Hub => Some("Hub"),
            Self::Gateway => Some("Gateway"),
            Self::Tunnel => Some("Tunnel"),
            Self::Member => Some("Member"),
        }
    }

    /// The side with this [`Side::hop`]. `None` for any other reason of a cause.
    pub fn of_hop(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.hop() == Some(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_is_read_as_it_was_written() {
        for side in Side::ALL {
            assert_eq!(side.hop().and_then(Side::of_hop), (side != Side::Caller).then_some(side));
        }
        for other in ["", "hub", "Caller", "FieldValueInvalid"] {
            assert_eq!(Side::of_hop(other), None, "{other}");
        }
    }
}
