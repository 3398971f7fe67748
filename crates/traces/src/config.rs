//! What an operator asks for.

use std::str::FromStr;

use http::uri::Authority;

/// As kube-apiserver's `TracingConfiguration` (`k8s.io/component-base/tracing/api/v1`) has it, and
/// the senders that decide about sampling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `host:port` of a collector that takes OTLP over gRPC, in the clear.
    pub endpoint: Authority,
    /// Of the requests without an earlier decision.
    pub sampling: PerMillion,
    pub parent: Parent,
}

/// A part of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerMillion(u32);

/// Whose `traceparent` is continued, and decides whether a request is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The hub's.
    Hub,
    /// No sender's.
    Nobody,
}

// === impl PerMillion ===

impl PerMillion {
    pub const NONE: Self = Self(0);
    const WHOLE: u32 = 1_000_000;

    #[cfg(feature = "otlp")]
    pub(crate) fn as_ratio(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }
}

impl FromStr for PerMillion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| *number <= Self::WHOLE);
        number.map(Self).ok_or_else(|| format!("not a number from 0 to {}", Self::WHOLE))
    }
}
