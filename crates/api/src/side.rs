//! Where a request failed, in the words for logs, metrics and responses.

use http::StatusCode;

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

/// The cause of an error, by its code. [`Fault::of`] is the only place that sorts codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The request itself, or the caller's permissions.
    Request,
    /// The state of the server's objects, compared with what the caller expected of it.
    State,
    /// The server, or something before it, for which the caller can do nothing.
    Server,
}

/// Codes of 4xx that are about a connection, a proxy or the load, whatever the request asked for.
const OF_SERVERS: [u16; 5] = [407, 408, 421, 425, 429];

// === impl Fault ===

impl Fault {
    pub fn of(code: StatusCode) -> Self {
        match code.as_u16() {
            409 | 410 | 412 | 423 => Self::State,
            number @ 400..500 if !OF_SERVERS.contains(&number) => Self::Request,
            _ => Self::Server,
        }
    }
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
    fn codes_are_sorted_by_who_can_change_the_answer() {
        let codes = |fault: Fault| {
            let is_of = |code: &u16| Fault::of(StatusCode::from_u16(*code).unwrap()) == fault;
            (100..600).filter(is_of).collect::<Vec<u16>>()
        };
        assert_eq!(codes(Fault::State), [409, 410, 412, 423]);
        let of_server: Vec<u16> = codes(Fault::Server).into_iter().filter(|code| (400..500).contains(code)).collect();
        assert_eq!(of_server, [407, 408, 421, 425, 429]);
        let requests = codes(Fault::Request);
        assert_eq!(requests.len(), 100 - 4 - 5);
        assert!([400, 401, 403, 404, 405, 406, 413, 415, 422, 431].iter().all(|code| requests.contains(code)));
    }

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
