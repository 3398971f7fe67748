//! `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`: any request's attributes for the access review.
//!
//! Segments are taken as given: for a proxied request the caller decodes the path first, as the member will, and for our own
//! paths nobody does. Of these only paths without a percent sign are served, and for all others the review then speaks of a
//! resource that nobody has been granted.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;

use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::selector::field::FieldSelector;
use crate::selector::label::LabelSelector;
use crate::{GROUP, VERSION, query};

/// The attributes of `method path?query`, whether or not anything here serves it.
pub(super) fn attributes(method: &Method, path: &str, query: Option<&str>) -> Attributes {
    let trimmed = path.trim_matches('/');
    let mut segments = trimmed.split('/');
    let group = match segments.next() {
        Some("api") => Some(""),
        Some("apis") => segments.next(),
        _ => None,
    };
    let (Some(group), Some(version), Some(first)) = (group, segments.next(), segments.next()) else {
        return Attributes::NonResource { path: Arc::from(path), verb: lower_case(method) };
    };
    let mut found = Found { verb: verb(method), by_path: false, namespace: None, parts: [first, "", ""] };
    found.read(segments);
    Attributes::Resource(found.into_attributes(group, version, query))
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

struct Found<'a> {
    verb: Verb,
    /// The verb came from a `watch/` or `proxy/` prefix.
    by_path: bool,
    namespace: Option<&'a str>,
    /// Resource, name, subresource.
    parts: [&'a str; 3],
}

// === impl Found ===

impl<'a> Found<'a> {
    /// `parts[0]` holds the first segment after the version, `rest` the others.
    fn read(&mut self, mut rest: impl Iterator<Item = &'a str>) {
        if let prefix @ ("watch" | "proxy") = self.parts[0] {
            self.verb = if prefix == "watch" { Verb::Watch } else { Verb::Proxy };
            self.by_path = true;
            self.parts[0] = rest.next().unwrap_or_default();
        }
        let mut name = rest.next();
        let mut subresource = rest.next();
        if self.parts[0] == "namespaces" {
            self.namespace = name;
            if let Some(resource) = subresource.filter(|part| !matches!(*part, "status" | "finalize")) {
                self.parts[0] = resource;
                name = rest.next();
                subresource = rest.next();
            }
        }
        self.parts[1] = name.unwrap_or_default();
        // `specialVerbsNoSubresources`: behind `proxy/` everything after the name is the path to be proxied.
        self.parts[2] = subresource.filter(|_| self.verb != Verb::Proxy).unwrap_or_default();
    }

    fn into_attributes(self, group: &str, version: &str, query: Option<&str>) -> ResourceAttributes {
        let [resource, name, subresource] = self.parts;
        let mut name = (!name.is_empty()).then(|| Arc::from(name));
        let mut verb = self.verb;
        if name.is_none() && verb == Verb::Get {
            verb = if query::flag(query, "watch") { Verb::Watch } else { Verb::List };
            name = selected_name(query);
        } else if name.is_none() && verb == Verb::Delete {
            verb = Verb::DeleteCollection;
        }
        let selects = !self.by_path && matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
        let selector = |key| query::first(query, key).filter(|value| selects && !value.is_empty()).map(Arc::from);
        ResourceAttributes {
            verb,
            group: shared(group),
            version: shared(version),
            resource: shared(resource),
            subresource: shared(subresource),
            namespace: self.namespace.filter(|namespace| !namespace.is_empty()).map(Arc::from),
            name,
            field_selector: selector("fieldSelector"),
            label_selector: selector("labelSelector"),
        }
    }
}

/// The name in `fieldSelector=metadata.name=<name>`, if it could be one (`content.IsPathSegmentName`).
///
/// Kubernetes takes it from the decoded `ListOptions`, hence from none of a query in which any option does not decode.
fn selected_name(query: Option<&str>) -> Option<Arc<str>> {
    let selector = FieldSelector::parse(&query::first(query, "fieldSelector")?).ok()?;
    let name = selector.exact("metadata.name")?;
    let valid = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    (valid && decodes(query)).then(|| Arc::from(name))
}

/// Whether the options of a list other than `fieldSelector` decode: booleans and plain text always do.
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
