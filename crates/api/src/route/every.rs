//! Requests for all members at once, in Karmada's dialect.

use std::borrow::Cow;

use http::Method;

use super::{BadPath, EveryRoute, MemberRequest, PROXY, Parsed, RawRequest, Route};
use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::karmada::{CLUSTERS, GROUP, VERSION};
use crate::path::has_dot_segment;
use crate::query;

/// Reviews the sender like a hub's aggregator does: for the proxy of a cluster `*`. The handler
/// also reviews each cluster.
pub(super) fn parsed<'a>(asked: RawRequest<'a>, prefix: &'a str) -> Parsed<'a> {
    let RawRequest { method, path, query, upgrade, .. } = asked;
    let remainder = &path[prefix.len()..];
    let asks = MemberRequest::read(method, remainder, query, upgrade.is_some());
    let attributes = Attributes::Resource(ResourceAttributes {
        verb: asks.reviewed_verb(upgrade.unwrap_or(Verb::Get)),
        group: Cow::Borrowed(GROUP),
        version: Cow::Borrowed(VERSION),
        resource: Cow::Borrowed(CLUSTERS),
        subresource: Cow::Borrowed(PROXY),
        namespace: None,
        name: Some("*".into()),
        field_selector: None,
        label_selector: None,
    });
    let route = if has_dot_segment(remainder) {
        Route::BadRequest(BadPath::DotSegment)
    } else if query.is_some_and(query::has_too_many_parameters) {
        Route::BadRequest(BadPath::Parameters)
    } else if !asks.can_be_decoded() {
        Route::BadRequest(BadPath::Escape)
    } else if !asks.has_one_reading() {
        Route::BadRequest(BadPath::Slashes)
    } else {
        route(method, asks, prefix)
    };
    Parsed { route, attributes }
}

fn route<'a>(method: &Method, asks: MemberRequest<'a>, prefix: &'a str) -> Route<'a> {
    let Attributes::Resource(resource) = asks.attributes() else { return Route::NotFound };
    // A stream from many members would look like a stream that lost some of them. The handler
    // refuses to switch protocols.
    if *method != Method::GET || asks.is_endless() || asks.may_act() {
        return Route::MethodNotAllowed;
    }
    match resource.verb {
        Verb::Get => Route::Every(EveryRoute { asks, prefix, is_list: false }),
        Verb::List => Route::Every(EveryRoute { asks, prefix, is_list: true }),
        _ => Route::MethodNotAllowed,
    }
}
