//! What a member learns of a caller.

use auth::User;
use http::HeaderMap;
use http::header::HeaderName;

use super::{EXTRA, GROUP, NotAHeader, UID, USER, Within, escaped, name, value};

/// The attributes of callers that members may see.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Disclosure {
    pub(super) uid: bool,
    /// Keys of extra attributes that are withheld, and prefixes of such keys.
    withheld: Vec<String>,
    withheld_prefixes: Vec<String>,
}

// === impl Disclosure ===

impl Disclosure {
    /// `uid`: whether UIDs are sent. `withheld`: keys of extra attributes that are not sent; a
    /// trailing `*` makes a prefix.
    pub fn new(uid: bool, withheld: &[String]) -> Self {
        let mut disclosure = Self { uid, ..Self::default() };
        for key in withheld.iter().map(|key| key.trim().to_ascii_lowercase()).filter(|key| !key.is_empty()) {
            match key.strip_suffix('*') {
                Some(prefix) => disclosure.withheld_prefixes.push(prefix.to_owned()),
                None => disclosure.withheld.push(key),
            }
        }
        disclosure
    }

    /// Writes `user`'s headers; `within` limits them further.
    pub fn apply(&self, user: &User, within: Option<&Within>, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
        headers.insert(USER.clone(), name(&user.name)?);
        // Skips empty groups: a member ignores an empty group, or treats it as an error.
        let told =
            |group: &&String| !group.is_empty() && within.is_none_or(|within| within.has_group(&user.name, group));
        for group in user.groups.iter().filter(told) {
            headers.append(GROUP.clone(), name(group)?);
        }
        let told = |uid: &&str| self.uid && !uid.is_empty() && within.is_none_or(|within| within.0.has_uid(uid));
        if let Some(uid) = user.uid.as_deref().filter(told) {
            headers.insert(UID.clone(), name(uid)?);
        }
        for (key, values) in user.extra.iter().filter(|(key, _)| !self.withholds(key)) {
            let header = format!("{EXTRA}{}", escaped(key));
            let header = HeaderName::from_bytes(header.as_bytes()).map_err(|_| NotAHeader)?;
            for text in values.iter().filter(|text| within.is_none_or(|within| within.has_extra(key, text))) {
                headers.append(header.clone(), value(text)?);
            }
        }
        Ok(())
    }

    /// Compares the key as the member reads it: header names arrive in lower case.
    fn withholds(&self, key: &str) -> bool {
        let key = &*key.to_ascii_lowercase();
        self.withheld.iter().any(|withheld| withheld == key)
            || self.withheld_prefixes.iter().any(|prefix| key.starts_with(prefix))
    }
}
