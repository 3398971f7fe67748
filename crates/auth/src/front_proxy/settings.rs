//! How the front proxy is recognised and in which headers it writes the user, as one immutable value.

use std::sync::Arc;

use http::HeaderName;

use crate::ca_bundle::CaBundle;

/// The front proxy's authorities, names and headers.
#[derive(Debug, Clone)]
pub(crate) struct FrontProxySettings {
    pub(crate) authorities: Arc<CaBundle>,
    /// Common names that may be the front proxy. Empty: any certificate of `authorities`.
    pub(crate) allowed_names: Vec<String>,
    pub(crate) headers: IdentityHeaders,
}

/// Names of the headers that carry a user. Any list may be empty; without user-name headers nobody is ever recognised.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IdentityHeaders {
    pub(crate) user: Vec<HeaderName>,
    pub(crate) uid: Vec<HeaderName>,
    pub(crate) group: Vec<HeaderName>,
    /// Lower case, never empty strings.
    pub(crate) extra_prefixes: Vec<Box<str>>,
}

// === impl FrontProxySettings ===

impl FrontProxySettings {
    pub(crate) fn allows(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }
}

// === impl IdentityHeaders ===

impl IdentityHeaders {
    /// Drops what can never be the name of a header, as no request could carry it.
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

    /// Whether `name` carries identity under these settings. Header names are lower case already.
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        self.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(&**prefix))
            || [&self.user, &self.uid, &self.group].into_iter().flatten().any(|own| own == name)
    }
}
