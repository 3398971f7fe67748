//! Negotiates the content type of documents that we write ourselves. Proxied responses are left to
//! the member.
//!
//! The rules are those of `k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go`:
//! clauses are tried by quality, then by how specific they are, then in order. `g`, `v` and `as`
//! ask for a transformed document. We only write JSON.

mod clause;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

use clause::Clause;

/// The form of an object or a list of our resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    Json,
    /// `as=Table`, which kubectl asks for.
    Table(MetaVersion),
    /// `as=PartialObjectMetadata` or `as=PartialObjectMetadataList`, which metadata clients ask
    /// for.
    Metadata(MetaVersion),
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1beta1,
}

/// What the representation is for: `as=PartialObjectMetadataList` only fits lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Object,
    List,
}

/// The form of `/apis`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryForm {
    /// `APIGroupList`
    Plain,
    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`
    AggregatedV2,
}

/// The form of an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatusForm {
    #[default]
    Json,
    Protobuf,
}

/// The Accept header for [`status`], unparsed: most requests end without an error and never need
/// it.
#[derive(Debug, Clone)]
pub struct LateForm(Late);

#[derive(Debug, Clone)]
enum Late {
    Of(HeaderValue),
    Picked(StatusForm),
}

/// We can serve no clause of the Accept header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("only the following media types are accepted: {JSON}")]
pub struct NotAcceptable;

pub(crate) const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Picks the form of our own resource: JSON without an Accept header.
pub fn representation(headers: &HeaderMap, shape: Shape) -> Result<Representation, NotAcceptable> {
    if headers.get_all(ACCEPT).iter().all(|line| line.as_bytes().trim_ascii().is_empty()) {
        return Ok(Representation::Json);
    }
    clause::sorted(headers).iter().find_map(|clause| represents(clause, shape)).ok_or(NotAcceptable)
}

/// Picks the form of `/apis`.
///
/// Never refuses. A client that only names forms we lack (`v2beta1`, protobuf) checks the
/// response's Content-Type and accepts the plain document. With a 406 it would see no resources at
/// all.
pub fn discovery(headers: &HeaderMap) -> DiscoveryForm {
    let form = |clause: &Clause<'_>| match clause.target {
        (None, None, None) => Some(DiscoveryForm::Plain),
        (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => Some(DiscoveryForm::AggregatedV2),
        _ => None,
    };
    let clauses = clause::sorted(headers);
    clauses.iter().filter(|clause| clause.matches(JSON)).find_map(form).unwrap_or(DiscoveryForm::Plain)
}

/// The form of an error, picked only when there is one. It is JSON, unless the header accepts
/// protobuf and not JSON. Never refuses.
pub fn status(headers: &HeaderMap) -> LateForm {
    let mut lines = headers.get_all(ACCEPT).iter();
    let first = lines.next();
    match lines.next() {
        None => LateForm(first.map_or(Late::Picked(StatusForm::Json), |line| Late::Of(line.clone()))),
        // Several lines are rare and too large to keep, so pick now.
        Some(_) => LateForm(Late::Picked(form(headers.get_all(ACCEPT)))),
    }
}

fn form<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> StatusForm {
    let mut form = StatusForm::Json;
    for clause in clause::of_lines(lines) {
        if clause.matches(JSON) {
            return StatusForm::Json;
        }
        if clause.matches(PROTOBUF) {
            form = StatusForm::Protobuf;
        }
    }
    form
}

/// Whether the client accepts plain JSON. It does without an Accept header. Ignores the parameters
/// of clauses.
pub fn json(headers: &HeaderMap) -> Result<(), NotAcceptable> {
    let absent = headers.get_all(ACCEPT).iter().all(|line| line.as_bytes().trim_ascii().is_empty());
    if absent || clause::all(headers).any(|clause| clause.matches(JSON)) { Ok(()) } else { Err(NotAcceptable) }
}

fn represents(clause: &Clause<'_>, shape: Shape) -> Option<Representation> {
    if !clause.matches(JSON) {
        return None;
    }
    let (group, version, kind) = clause.target;
    if clause.target == (None, None, None) {
        return Some(Representation::Json);
    }
    let version = match (group?, version?) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
        _ => return None,
    };
    match (kind?, shape) {
        ("Table", _) => Some(Representation::Table(version)),
        ("PartialObjectMetadata", Shape::Object) | ("PartialObjectMetadataList", Shape::List) => {
            Some(Representation::Metadata(version))
        }
        _ => None,
    }
}

// === impl LateForm ===

impl LateForm {
    pub fn pick(&self) -> StatusForm {
        match &self.0 {
            Late::Of(line) => form([line]),
            Late::Picked(form) => *form,
        }
    }
}

// === impl MetaVersion ===

impl MetaVersion {
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

#[cfg(test)]
mod tests;
