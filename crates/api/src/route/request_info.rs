//! `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`: any request's attributes for the access
//! review.
//!
//! Segments are taken as given. A proxied request's path is decoded first, as the member will
//! (`member_request`); our own paths are never decoded. Of these only paths without a percent sign
//! are served, and for all others the review speaks of a resource without grants.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;

use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::selector::field::FieldSelector;
use crate::selector::label::LabelSelector;
use crate::{GROUP, VERSION, query};

/// What the path and the method say: the query is not looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'p> {
    /// A read without a name is still a `Get`: whether it lists or watches is in the query.
    verb: Verb,
    /// The verb came from a `watch/` or `proxy/` prefix.
    by_path: bool,
    pub(super) group: &'p str,
    version: &'p str,
    namespace: Option<&'p str>,
    pub(super) resource: &'p str,
    name: &'p str,
    pub(super) subresource: &'p str,
    /// What follows the slash behind the subresource, but for slashes at the end.
    pub(super) rest: &'p str,
}

/// As `split('/')`, byte by byte: its search is made for long texts, and cost more than all the
/// rest for these few short ones.
struct Segments<'p> {
    rest: Option<&'p str>,
}

/// The attributes of `method path?query`, whether or not anything here serves it.
pub(super) fn attributes(method: &Method, path: &str, query: Option<&str>) -> Attributes {
    match Parts::of(method, path) {
        Some(parts) => Attributes::Resource(parts.attributes(query)),
        None => Attributes::NonResource { path: Arc::from(path), verb: lower_case(method) },
    }
}

/// RBAC verb of a request for a named object.
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
    /// `None`: the path is about no resource.
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
        // `specialVerbsNoSubresources`: behind `proxy/` everything after the name is the path to be
        // proxied.
        let subresource = subresource.filter(|_| verb != Verb::Proxy).unwrap_or_default();
        let name = name.unwrap_or_default();
        let rest = segments.rest.unwrap_or_default();
        Some(Self { verb, by_path, group, version, namespace, resource, name, subresource, rest })
    }

    /// The verb, where `watch` says whether the query asks for a watch.
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

/// The name in `fieldSelector=metadata.name=<name>`, if it could be one
/// (`content.IsPathSegmentName`).
///
/// Kubernetes takes it from the decoded `ListOptions`, hence from none of a query in which any
/// option does not decode.
fn selected_name(query: Option<&str>) -> Option<Arc<str>> {
    let selector = FieldSelector::parse(&query::first(query, "fieldSelector")?).ok()?;
    let name = selector.exact("metadata.name")?;
    let valid = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    (valid && decodes(query)).then(|| Arc::from(name))
}

/// Whether the options of a list other than `fieldSelector` decode: booleans and plain text always
/// do.
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
