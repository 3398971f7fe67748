//! Why a stream was not opened, as sent: a status and three headers.

use std::fmt;

use http::{HeaderMap, HeaderValue, StatusCode};

/// The machine-readable reason, one word of [`Reason`].
pub const REASON: &str = "tunnel-reason";
/// The hop that refused, one word of [`Hop`].
pub const HOP: &str = "tunnel-hop";
/// The message for people, percent-encoded UTF-8.
pub const MESSAGE: &str = "tunnel-message";
/// Longest message that is sent (in bytes) or accepted (in characters).
const LONGEST_MESSAGE: usize = 512;

/// The hop that refused a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hop {
    /// The tunnel-server.
    Server,
    /// The tunnel-agent.
    Agent,
}

/// Why a stream was not opened. Each has one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// 400: the request is malformed.
    Malformed,
    /// 403: the caller, or the destination, is not allowed.
    Forbidden,
    /// 404: the cluster is not known here.
    UnknownCluster,
    /// 429: too many streams or dials.
    Limit,
    /// 502: the agent could not resolve the destination's name.
    Lookup,
    /// 502: the agent could not connect to the destination.
    Unreachable,
    /// 503: the cluster has no link here now; another server may have one.
    NoLink,
    /// 503: the link, or the server, is shutting down; another may accept.
    Draining,
    /// 504: the destination did not answer in time.
    DialTimeout,
    /// 504: the agent did not answer in time.
    AgentTimeout,
}

/// A stream that was not opened. Displays as its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub hop: Hop,
    pub reason: Reason,
    /// Fit for the caller: names the cluster or the destination, the cause, the next step.
    pub message: String,
}

// === impl Reason ===

impl Reason {
    pub(crate) const ALL: [Self; 10] = [
        Self::Malformed,
        Self::Forbidden,
        Self::UnknownCluster,
        Self::Limit,
        Self::Lookup,
        Self::Unreachable,
        Self::NoLink,
        Self::Draining,
        Self::DialTimeout,
        Self::AgentTimeout,
    ];

    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::UnknownCluster => StatusCode::NOT_FOUND,
            Self::Limit => StatusCode::TOO_MANY_REQUESTS,
            Self::Lookup | Self::Unreachable => StatusCode::BAD_GATEWAY,
            Self::NoLink | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::DialTimeout | Self::AgentTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Whether another link or another server may be tried: nothing was dialled.
    pub fn is_worth_another_try(self) -> bool {
        matches!(self, Self::UnknownCluster | Self::NoLink | Self::Draining | Self::Limit)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forbidden => "forbidden",
            Self::UnknownCluster => "unknown-cluster",
            Self::Limit => "limit",
            Self::Lookup => "lookup",
            Self::Unreachable => "unreachable",
            Self::NoLink => "no-link",
            Self::Draining => "draining",
            Self::DialTimeout => "dial-timeout",
            Self::AgentTimeout => "agent-timeout",
        }
    }

    /// The reason that a bare status stands for.
    fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::BAD_REQUEST => Self::Malformed,
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::UnknownCluster,
            StatusCode::TOO_MANY_REQUESTS => Self::Limit,
            StatusCode::SERVICE_UNAVAILABLE => Self::NoLink,
            StatusCode::GATEWAY_TIMEOUT => Self::DialTimeout,
            _ => Self::Unreachable,
        }
    }
}

// === impl Hop ===

impl Hop {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Agent => "agent",
        }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Refusal ===

impl Refusal {
    pub fn new(hop: Hop, reason: Reason, message: impl Into<String>) -> Self {
        Self { hop, reason, message: message.into() }
    }

    /// Reads a response that is not 200. `default` is the hop at the other end of the link, for
    /// peers that do not name one.
    pub fn read(status: StatusCode, headers: &HeaderMap, default: Hop) -> Self {
        let word = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let reason = word(REASON)
            .and_then(|word| Reason::ALL.into_iter().find(|reason| reason.as_str() == word))
            .filter(|reason| reason.status() == status)
            .unwrap_or_else(|| Reason::of_status(status));
        let hop = match word(HOP) {
            Some("agent") => Hop::Agent,
            Some("server") => Hop::Server,
            _ => default,
        };
        let message = word(MESSAGE).map(decoded).filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| format!("the {hop} answered {status}"));
        Self { hop, reason, message }
    }

    /// Writes the three headers.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(REASON, HeaderValue::from_static(self.reason.as_str()));
        headers.insert(HOP, HeaderValue::from_static(self.hop.as_str()));
        let message = encoded(&self.message);
        headers.insert(MESSAGE, HeaderValue::from_str(&message).expect("percent-encoding leaves visible ASCII"));
    }
}

/// `%`, controls and everything beyond ASCII.
const ESCAPED: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b'%');

fn encoded(message: &str) -> String {
    let message = &message[..message.floor_char_boundary(LONGEST_MESSAGE)];
    percent_encoding::utf8_percent_encode(message, ESCAPED).to_string()
}

/// Removes control characters: the text goes to logs and terminals.
fn decoded(text: &str) -> String {
    let text = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    text.chars().filter(|character| !character.is_control()).take(LONGEST_MESSAGE).collect()
}
