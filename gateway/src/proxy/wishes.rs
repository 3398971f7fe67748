//! What the query of a request for a member says about how it is served. It is forwarded as it is; this reads along, once.

use api::{path, query};
use http::Uri;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    pub watch: bool,
    /// Of logs.
    pub follow: bool,
    /// To act on the member as its caller. Only the exact word counts, as for the Go cluster-gateway.
    pub impersonate: bool,
}

// === impl Wishes ===

impl Wishes {
    pub fn of(query: Option<&str>) -> Self {
        if query.is_none() {
            return Self::default();
        }
        let [watch, follow, impersonate] = query::firsts(query, ["watch", "follow", "impersonate"]);
        let flag = |value: Option<_>| value.as_deref().is_some_and(query::truth);
        Self { watch: flag(watch), follow: flag(follow), impersonate: impersonate.as_deref() == Some("true") }
    }

    /// Whether it is a watch or a followed log, which have no end of their own. The member's part of the path begins at
    /// `remainder`.
    pub fn is_endless(self, uri: &Uri, remainder: usize) -> bool {
        self.watch || self.follow || uri.path().get(remainder..).is_some_and(path::is_legacy_watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wish_is_read_from_its_own_first_value() {
        let wishes = |watch, follow, impersonate| Wishes { watch, follow, impersonate };
        for (query, expected) in [
            ("", wishes(false, false, false)),
            ("limit=500&watch=1", wishes(true, false, false)),
            ("watch=0&watch=1&follow", wishes(false, true, false)),
            ("%77atch=true&impersonate=tru%65&follow=false", wishes(true, false, true)),
            ("impersonate=1&x=%zz", wishes(false, false, false)),
            ("impersonate=yes&impersonate=true", wishes(false, false, false)),
        ] {
            assert_eq!(Wishes::of(Some(query)), expected, "{query}");
        }
        assert_eq!(Wishes::of(None), Wishes::default());
    }
}
