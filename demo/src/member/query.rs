//! The query of a request, read like those of the gateway's own resources.

use api::query;

use super::refusal::Refusal;

/// A raw query.
pub(super) struct Query<'a>(pub(super) &'a str);

// === impl Query ===

impl Query<'_> {
    /// The first value of a key, empty if there is none: both mean "not given" in the Kubernetes
    /// API.
    pub(super) fn text(&self, key: &str) -> String {
        query::first(Some(self.0), key).unwrap_or_default().into_owned()
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        query::flag(Some(self.0), key)
    }

    /// A whole number; `None` when it is not given.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        match self.text(key).as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Refusal::bad(format!("invalid value for {key}: {text:?}"))),
        }
    }
}
