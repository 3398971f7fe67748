//! The headers in which a front proxy sends the user: their names, and the user read from them.

mod memory;

use http::HeaderName;

pub(crate) use self::memory::{IdentityCache, unescape_key};

/// Names of the headers with the user's identity. Any list may be empty; without user-name headers
/// no user is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IdentityHeaders {
    pub(crate) user: Vec<HeaderName>,
    pub(crate) uid: Vec<HeaderName>,
    pub(crate) group: Vec<HeaderName>,
    /// Lower case, never empty strings.
    pub(crate) extra_prefixes: Vec<Box<str>>,
}

// === impl IdentityHeaders ===

impl IdentityHeaders {
    /// Drops names that are no valid header names, because no request could have them.
    pub(crate) fn new(user: &[String], uid: &[String], group: &[String], extra_prefixes: &[String]) -> Self {
        let names = |list: &[String]| list.iter().filter_map(|name| name.trim().parse().ok()).collect();
        Self {
            user: names(user),
            uid: names(uid),
            group: names(group),
            extra_prefixes: extra_prefixes
                .iter()
                .map(|prefix| prefix.trim().to_ascii_lowercase().into_boxed_str())
                // An empty prefix would turn every header of the request into an extra.
                .filter(|prefix| !prefix.is_empty())
                .collect(),
        }
    }

    /// Whether `name` contains identity by these settings. Header names are lower case already.
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        self.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(&**prefix))
            || [&self.user, &self.uid, &self.group].into_iter().flatten().any(|own| own == name)
    }
}

#[cfg(test)]
mod tests;
