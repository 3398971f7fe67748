//! The query of a request, as Kubernetes clients write it.

use percent_encoding::percent_decode_str;

use super::refusal::Refusal;

/// A raw query.
pub(super) struct Query<'a>(pub(super) &'a str);

// === impl Query ===

impl Query<'_> {
    /// The first value of a key, empty when there is none: both mean "not given" in the Kubernetes
    /// API.
    pub(super) fn text(&self, key: &str) -> String {
        let pairs = self.0.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let value = { pairs }.find(|(name, _)| *name == key).map_or("", |(_, value)| value);
        percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
    }

    /// A boolean as Go's `strconv.ParseBool` reads it; anything else is false.
    pub(super) fn flag(&self, key: &str) -> bool {
        matches!(self.text(key).as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True")
    }

    /// A whole number; `None` when it is not given.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        match self.text(key).as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Refusal::bad(format!("invalid value for {key}: {text:?}"))),
        }
    }
}
