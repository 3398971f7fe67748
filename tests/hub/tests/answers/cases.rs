//! Requests whose answers contain no times: each is refused, a dry run, or changes nothing.

use super::JSON;

const MAPS: &str = "/api/v1/namespaces/answers/configmaps";
const SETTINGS: &str = "/api/v1/namespaces/answers/configmaps/settings";
const MERGE: &str = "application/merge-patch+json";

/// One request and the code of its answer.
pub(super) struct Case {
    pub(super) code: u16,
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Content type of `body`.
    pub(super) kind: &'static str,
    pub(super) body: &'static str,
    /// Whether the answer has `Warning` headers.
    pub(super) warns: bool,
}

// === impl Case ===

impl Case {
    const fn new(code: u16, name: &'static str, method: &'static str, path: &'static str) -> Self {
        Self { code, name, method, path, kind: JSON, body: "", warns: false }
    }

    const fn with(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }

    const fn of(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    const fn warning(mut self) -> Self {
        self.warns = true;
        self
    }
}

pub(super) const CASES: &[Case] = &[
    Case::new(404, "for a change", "PATCH", "/api/v1/namespaces/answers/configmaps/absent").of(MERGE).with("{}"),
    Case::new(404, "for an unknown kind", "POST", "/apis/nowhere.example.com/v1/things").with("{}"),
    Case::new(409, "for what exists", "POST", MAPS).with(r#"{"metadata":{"name":"settings"}}"#),
    Case::new(409, "for a stale version", "PUT", SETTINGS)
        .with(r#"{"metadata":{"name":"settings","resourceVersion":"1"}}"#),
    Case::new(409, "for a precondition", "DELETE", SETTINGS).with(r#"{"preconditions":{"uid":"another"}}"#),
    Case::new(
        409,
        "for an apply that conflicts",
        "PATCH",
        "/api/v1/namespaces/answers/configmaps/settings?fieldManager=x&dryRun=All",
    )
    .of("application/apply-patch+yaml")
    .with("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n"),
    Case::new(422, "for a wrong name", "POST", MAPS).with(r#"{"metadata":{"name":"Not_Valid"}}"#),
    Case::new(422, "for several mistakes", "POST", "/api/v1/namespaces/answers/pods")
        .with(r#"{"metadata":{"name":"-"},"spec":{"containers":[]}}"#),
    Case::new(422, "for a patch", "PATCH", SETTINGS).of(MERGE).with(r#"{"metadata":{"labels":{"no spaces":"x"}}}"#),
    Case::new(400, "for no JSON", "POST", MAPS).with("{"),
    Case::new(400, "for an unknown field", "POST", "/api/v1/namespaces/answers/configmaps?fieldValidation=Strict")
        .with(r#"{"metadata":{"name":"x"},"date":{}}"#),
    Case::new(400, "for a name that differs", "PUT", SETTINGS).with(r#"{"metadata":{"name":"other"}}"#),
    Case::new(405, "for a method", "PUT", MAPS).with("{}"),
    Case::new(405, "for a HEAD", "HEAD", SETTINGS),
    Case::new(415, "for another type", "PATCH", SETTINGS).of("text/csv").with("a,b"),
    Case::new(
        200,
        "with warnings of unknown fields",
        "PATCH",
        "/api/v1/namespaces/answers/configmaps/settings?fieldValidation=Warn&dryRun=All",
    )
    .of(MERGE)
    .with(r#"{"date":1,"dato":2}"#)
    .warning(),
    Case::new(200, "with the warning of an old kind", "GET", "/api/v1/componentstatuses?labelSelector=none").warning(),
    Case::new(200, "for a change that changes nothing", "PATCH", SETTINGS)
        .of(MERGE)
        .with(r#"{"data":{"colour":"red"}}"#),
    Case::new(200, "for a deletion as a dry run", "DELETE", SETTINGS)
        .with(r#"{"propagationPolicy":"Background","dryRun":["All"]}"#),
];
