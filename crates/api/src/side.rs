//! Where a request failed, in the words that servers write and programs read.

/// Where a request failed, seen from the gateway: the side that has to act, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The request itself, its rights, or its client.
    Caller,
    /// The hub's API server, or what is registered there.
    Hub,
    /// The gateway's own limits and rules.
    Gateway,
    /// What leads to a member that is not dialled: tunnel-servers and agents.
    Tunnel,
    /// The member, what leads straight to it, or its credential.
    Member,
}

// === impl Side ===

impl Side {
    /// All of them, from the caller on.
    pub const ALL: [Self; 5] = [Self::Caller, Self::Hub, Self::Gateway, Self::Tunnel, Self::Member];

    /// As logs, audit events and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Tunnel => "tunnel",
            Self::Member => "member",
        }
    }

    /// As `reason` of an entry in `status.details.causes`. A caller is no hop.
    pub fn hop(self) -> Option<&'static str> {
        match self {
            Self::Caller => None,
            Self::Hub => Some("Hub"),
            Self::Gateway => Some("Gateway"),
            Self::Tunnel => Some("Tunnel"),
            Self::Member => Some("Member"),
        }
    }

    /// What [`Side::hop`] has written; `None` for every other reason a cause may have.
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
