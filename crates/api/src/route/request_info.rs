//! Computes any request's attributes for the access review, like
//! `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`.
//!
//! Reads segments verbatim. A proxied request's path is decoded before, as the member will
//! (`member_request`). Our own paths are never decoded: those with a percent sign are not served,
//! and their review is about a resource without grants.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;

use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::selector::field::FieldSelector;
use crate::selector::label::LabelSelector;
use crate::{GROUP, VERSION, query};

/// The facts in the path and the method, without the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'p> {
    /// A read without a name is still a `Get`: the query decides whether it lists or watches.
    verb: Verb,
    /// Whether the verb came from a `watch/` or `proxy/` prefix.
    by_path: bool,
    pub(super) group: &'p str,
    version: &'p str,
    namespace: Option<&'p str>,
    pub(super) resource: &'p str,
    name: &'p str,
    pub(super) subresource: &'p str,
    /// The path after the subresource and a slash, without trailing slashes.
    pub(super) rest: &'p str,
}

/// Like `split('/')`, but byte by byte: its search is made for long texts. On these few short ones
/// it cost more than the rest of the parse.
struct Segments<'p> {
    rest: Option<&'p str>,
}

/// The attributes of `method path?query`, whether or not we serve it.
pub(super) fn attributes(method: &Method, path: &str, query: Option<&str>) -> Attributes {
    match Parts::of(method, path) {
        Some(parts) => Attributes::Resource(parts.attributes(query)),
        None => Attributes::NonResource { path: Arc::from(path), verb: lower_case(method) },
    }
}

/// The RBAC verb of a request for a named object.
pub(super) fn verb(method: &Method) -> Verb {
    match *method {
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::None,
    }
}

pub(super) fn lower_case(method: &Method) -> Cow<'static, str> {
    match *method {
        Method::GET => Cow::Borrowed("get"),
        Method::HEAD => Cow::Borrowed("head"),
        Method::POST => Cow::Borrowed("post"),
        _ => Cow::Owned(method.as_str().to_ascii_lowercase()),
    }
}

// === impl Parts ===

impl<'p> Parts<'p> {
    /// `None` if the path is not about a resource.
    pub(super) fn of(method: &Method, path: &'p str) -> Option<Self> {
        let mut segments = Segments { rest: Some(path.trim_matches('/')) };
        let group = match segments.next() {
            Some("api") => "",
            Some("apis") => segments.next()?,
            _ => return None,
        };
        let (version, first) = (segments.next()?, segments.next()?);
        let (verb, by_path) = match first {
            "watch" => (Verb::Watch, true),
            "proxy" => (Verb::Proxy, true),
            _ => (verb(method), false),
        };
        let mut resource = if by_path { segments.next().unwrap_or_default() } else { first };
        let mut name = segments.next();
        let mut subresource = segments.next();
        let mut namespace = None;
        if resource == "namespaces" {
            namespace = name;
            if let Some(inner) = subresource.filter(|part| !matches!(*part, "status" | "finalize")) {
                resource = inner;
                name = segments.next();
                subresource = segments.next();
            }
        }
        // `specialVerbsNoSubresources`: behind `proxy/`, everything after the name is the path to
        // proxy.
        let subresource = subresource.filter(|_| verb != Verb::Proxy).unwrap_or_default();
        let name = name.unwrap_or_default();
        let rest = segments.rest.unwrap_or_default();
        Some(Self { verb, by_path, group, version, namespace, resource, name, subresource, rest })
    }

    /// The verb. `watch` is whether the query asks for a watch.
    pub(super) fn verb(&self, watch: bool) -> Verb {
        match self.verb {
            Verb::Get if self.name.is_empty() && watch => Verb::Watch,
            Verb::Get if self.name.is_empty() => Verb::List,
            Verb::Delete if self.name.is_empty() => Verb::DeleteCollection,
            verb => verb,
        }
    }

    pub(super) fn attributes(&self, query: Option<&str>) -> ResourceAttributes {
        let verb = self.verb(query::flag(query, "watch"));
        let selects = !self.by_path && matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
        let selector = |key| query::first(query, key).filter(|value| selects && !value.is_empty()).map(Arc::from);
        let reads = self.verb == Verb::Get;
        let selected = || reads.then(|| selected_name(query)).flatten();
        ResourceAttributes {
            verb,
            group: shared(self.group),
            version: shared(self.version),
            resource: shared(self.resource),
            subresource: shared(self.subresource),
            namespace: self.namespace.filter(|namespace| !namespace.is_empty()).map(Arc::from),
            name: if self.name.is_empty() { selected() } else { Some(Arc::from(self.name)) },
            field_selector: selector("fieldSelector"),
            label_selector: selector("labelSelector"),
        }
    }
}

// === impl Segments ===

impl<'p> Iterator for Segments<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest?;
        let end = text.bytes().position(|byte| byte == b'/');
        self.rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    }
}

/// The name in `fieldSelector=metadata.name=<name>`, if it is a valid name
/// (`content.IsPathSegmentName`).
///
/// Kubernetes reads it from the decoded `ListOptions`, so it finds none if any option of the query
/// does not decode.
fn selected_name(query: Option<&str>) -> Option<Arc<str>> {
    let selector = FieldSelector::parse(&query::first(query, "fieldSelector")?).ok()?;
    let name = selector.exact("metadata.name")?;
    let valid = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    (valid && decodes(query)).then(|| Arc::from(name))
}

/// Whether all list options except `fieldSelector` decode. Booleans and plain text always do.
fn decodes(query: Option<&str>) -> bool {
    let number = |key| query::first(query, key).is_none_or(|value| value.parse::<i64>().is_ok());
    number("limit")
        && number("timeoutSeconds")
        && query::first(query, "labelSelector").is_none_or(|text| LabelSelector::parse(&text).is_ok())
}

fn shared(text: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 7] =
        [super::RESOURCE, super::PROXY, super::HEALTH, super::VIRTUAL_CLUSTERS, GROUP, VERSION, ""];
    KNOWN.into_iter().find(|known| *known == text).map_or_else(|| Cow::Owned(text.to_owned()), Cow::Borrowed)
}
