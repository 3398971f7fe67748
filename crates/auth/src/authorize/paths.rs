//! Non-resource paths that every caller may read: probes.
//!
//! `k8s.io/apiserver/pkg/authorization/path/path.go`.

use api::access::Attributes;

/// Paths of `--authorization-always-allow-paths`, without their leading slash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AlwaysAllowed {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

/// Only a trailing `*` has a meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only a trailing * is allowed in the always-allowed path {0:?}")]
pub struct PathError(String);

// === impl AlwaysAllowed ===

impl AlwaysAllowed {
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, PathError> {
        let mut allowed = Self::default();
        for path in paths {
            let trimmed = path.strip_prefix('/').unwrap_or(path);
            match trimmed.split_once('*') {
                None => allowed.exact.push(trimmed.to_owned()),
                Some((prefix, "")) => allowed.prefixes.push(prefix.to_owned()),
                Some(_) => return Err(PathError(path.to_owned())),
            }
        }
        Ok(allowed)
    }

    /// Never true for a resource, whatever its path looks like.
    pub(crate) fn contains(&self, attributes: &Attributes) -> bool {
        let Attributes::NonResource { path, .. } = attributes else { return false };
        let path = path.strip_prefix('/').unwrap_or(path);
        self.exact.iter().any(|exact| exact == path) || self.prefixes.iter().any(|prefix| path.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Attributes {
        Attributes::NonResource { path: path.into(), verb: "get".into() }
    }

    #[test]
    fn exact_paths_do_not_open_what_lies_below() {
        let allowed = AlwaysAllowed::new(["/healthz", "/livez", "readyz", "/docs/*"]).expect("valid");
        for path in ["/healthz", "/readyz", "/docs/", "/docs/a/b"] {
            assert!(allowed.contains(&get(path)), "{path}");
        }
        for path in ["/healthz/", "/healthz/etcd", "/docs", "/", "/metrics", "//healthz"] {
            assert!(!allowed.contains(&get(path)), "{path}");
        }
    }

    #[test]
    fn a_star_in_the_middle_is_refused() {
        assert_eq!(AlwaysAllowed::new(["/a*b"]), Err(PathError("/a*b".to_owned())));
        assert_eq!(AlwaysAllowed::new(["/a**"]), Err(PathError("/a**".to_owned())));
        assert!(AlwaysAllowed::new(["*"]).expect("valid").contains(&get("/anything")));
    }
}
