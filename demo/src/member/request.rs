//! What a request asks for: path and query parsed once, at the edge, by pure functions.
//!
//! Only the spellings that Kubernetes clients produce are understood; everything else is a 404 or a 400.
//! Query keys that a sample member does not implement (`limit`, `continue`, `pretty`) are ignored, as the API
//! conventions allow.

use http::Method;
use percent_encoding::percent_decode_str;

use super::{
    kind::{Group, Kind},
    status::Refusal,
};

/// The thing a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/livez`, `/readyz`, `/healthz`.
    Health,
    /// `/version`.
    Version,
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/api/v1`, or `/apis/<group>/v1`.
    Resources(Group),
    /// `/openapi/v3`.
    OpenApi,
    /// A list or a watch; `namespace` is `None` across namespaces.
    Collection {
        /// The resource type.
        kind: Kind,
        /// One namespace, or all.
        namespace: Option<String>,
    },
    /// One object; `namespace` is empty for cluster-scoped kinds.
    Object {
        /// The resource type.
        kind: Kind,
        /// The namespace it lives in.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// `pods/<name>/log`.
    Log {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
}

/// A decoded query.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

// === impl Route ===

impl Route {
    /// Parses method and path.
    pub(crate) fn parse(method: &Method, path: &str) -> Result<Self, Refusal> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let route = match segments.as_slice() {
            ["livez" | "readyz" | "healthz"] => Self::Health,
            ["version"] => Self::Version,
            ["api"] => Self::Core,
            ["apis"] => Self::Groups,
            ["openapi", "v3"] => Self::OpenApi,
            ["api", "v1", rest @ ..] => Self::resource(Group::Core, rest)?,
            ["apis", group, "v1", rest @ ..] => {
                Self::resource(Group::from_name(group).ok_or(Refusal::NoSuchPath)?, rest)?
            }
            _ => return Err(Refusal::NoSuchPath),
        };
        if method == Method::GET { Ok(route) } else { Err(Refusal::MethodNotAllowed) }
    }

    fn resource(group: Group, segments: &[&str]) -> Result<Self, Refusal> {
        let any = |plural: &str| Kind::from_plural(group, plural).ok_or(Refusal::NoSuchPath);
        let kind = |plural: &str, namespaced: bool| match any(plural)? {
            kind if kind.traits().namespaced == namespaced => Ok(kind),
            _ => Err(Refusal::NoSuchPath),
        };
        match *segments {
            [] => Ok(Self::Resources(group)),
            [plural] => Ok(Self::Collection { kind: any(plural)?, namespace: None }),
            [plural, name] => {
                Ok(Self::Object { kind: kind(plural, false)?, namespace: String::new(), name: name.into() })
            }
            ["namespaces", namespace, plural] => {
                Ok(Self::Collection { kind: kind(plural, true)?, namespace: Some(namespace.into()) })
            }
            ["namespaces", namespace, plural, name] => {
                Ok(Self::Object { kind: kind(plural, true)?, namespace: namespace.into(), name: name.into() })
            }
            _ if group != Group::Core => Err(Refusal::NoSuchPath),
            ["namespaces", namespace, "pods", name, "log"] => {
                Ok(Self::Log { namespace: namespace.into(), name: name.into() })
            }
            ["namespaces", _, "pods", _, stream @ ("exec" | "attach" | "portforward" | "proxy"), ..] => {
                Err(Refusal::RunsNothing(stream.into()))
            }
            _ => Err(Refusal::NoSuchPath),
        }
    }
}

// === impl Query ===

impl Query {
    /// Decodes `a=b&c=d`; `+` is a space, bytes that are no UTF-8 become U+FFFD.
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a key, empty when there is none: both mean "not given" in the Kubernetes API.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    /// A boolean as Go's `strconv.ParseBool` reads it; anything else is false.
    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.text(key), "1" | "t" | "T" | "true" | "TRUE" | "True")
    }

    /// A whole number; `None` when it is not given.
    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        match self.text(key) {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| Refusal::BadRequest(format!("invalid value for {key}: {text:?}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn get(path: &str) -> Result<Route, Refusal> {
        Route::parse(&Method::GET, path)
    }

    #[test]
    fn paths_name_collections_objects_and_logs() {
        let collection =
            |kind, namespace: Option<&str>| Route::Collection { kind, namespace: namespace.map(Into::into) };
        assert_eq!(get("/api/v1/pods"), Ok(collection(Kind::Pod, None)));
        assert_eq!(get("/api/v1/namespaces/shop/pods"), Ok(collection(Kind::Pod, Some("shop"))));
        assert_eq!(get("/api/v1/namespaces"), Ok(collection(Kind::Namespace, None)));
        let object =
            |kind, namespace: &str, name: &str| Route::Object { kind, namespace: namespace.into(), name: name.into() };
        assert_eq!(get("/api/v1/namespaces/shop"), Ok(object(Kind::Namespace, "", "shop")));
        assert_eq!(get("/api/v1/nodes/n1"), Ok(object(Kind::Node, "", "n1")));
        assert_eq!(get("/api/v1/namespaces/shop/pods/web"), Ok(object(Kind::Pod, "shop", "web")));
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        assert_eq!(get(leases), Ok(collection(Kind::Lease, Some("kube-node-lease"))));
        assert_eq!(get(&format!("{leases}/n1")), Ok(object(Kind::Lease, "kube-node-lease", "n1")));
        assert_eq!(get("/apis/coordination.k8s.io/v1"), Ok(Route::Resources(Group::Coordination)));
        let log = Route::Log { namespace: "shop".into(), name: "web".into() };
        assert_eq!(get("/api/v1/namespaces/shop/pods/web/log"), Ok(log));
    }

    #[test]
    fn wrong_scopes_and_unknown_paths_are_not_found() {
        for path in [
            "/",
            "/api/v2",
            "/apis/apps/v1",
            "/openapi/v2",
            "/api/v1/secrets",
            "/api/v1/leases",
            "/apis/coordination.k8s.io/v1/pods",
            "/apis/coordination.k8s.io/v1/namespaces/shop/pods/web/log",
            "/api/v1/pods/web",
            "/api/v1/namespaces/shop/nodes",
            "/api/v1/namespaces/shop/pods/web/status",
            "/api/v1//pods",
        ] {
            assert_eq!(get(path), Err(Refusal::NoSuchPath), "{path}");
        }
    }

    #[test]
    fn writes_are_not_allowed_and_streams_not_implemented() {
        assert_eq!(Route::parse(&Method::DELETE, "/api/v1/nodes/n1"), Err(Refusal::MethodNotAllowed));
        let exec = Route::parse(&Method::POST, "/api/v1/namespaces/shop/pods/web/exec");
        assert_eq!(exec, Err(Refusal::RunsNothing("exec".into())));
    }

    #[test]
    fn queries_decode_like_go() {
        let query = Query::parse("labelSelector=app%3Dweb%2Ctier+in+%28a%29&watch=1&limit=500&limit=7&follow");
        assert_eq!(query.text("labelSelector"), "app=web,tier in (a)");
        assert!(query.flag("watch") && !query.flag("follow") && !query.flag("absent"));
        assert_eq!(query.number("limit"), Ok(Some(500)));
        assert_eq!(query.number("absent"), Ok(None));
        assert!(
            matches!(query.number("labelSelector"), Err(Refusal::BadRequest(text)) if text.contains("labelSelector"))
        );
    }

    proptest! {
        #[test]
        fn no_path_or_query_panics(path in ".{0,80}", query in ".{0,80}") {
            let _ = get(&path);
            let _ = Query::parse(&query).number("limit");
        }
    }
}
