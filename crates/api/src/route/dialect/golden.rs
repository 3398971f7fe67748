//! Renders the parse of many paths as text, for comparison with a golden file.

use std::fmt::Write as _;

use http::Method;

use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::route::{RawRequest, Route, Served, parse};

/// Lists for each `METHOD path` its route and the attributes that are reviewed. A `!` before the
/// method means a request to switch protocols.
pub(in crate::route) fn table(served: Served, requests: &[&str]) -> String {
    requests.iter().fold(String::new(), |mut text, request| {
        writeln!(text, "{request}\n    {}", line(served, request)).expect("it is memory");
        text
    })
}

fn line(served: Served, request: &str) -> String {
    let (is_upgrade, request) = request.strip_prefix('!').map_or((false, request), |rest| (true, rest));
    let (method, target) = request.split_once(' ').expect("a method and a path");
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let method: Method = method.parse().expect("a method");
    let upgrade = is_upgrade.then_some(Verb::Create);
    let parsed = parse(RawRequest { method: &method, path, query, upgrade, served });
    let reviewed = reviewed(&parsed.attributes);
    match parsed.route {
        Route::Proxy(route) => {
            let remainder = &path[route.prefix.len()..];
            format!("{:?} {}, member's part {remainder:?}, review: {reviewed}", route.dialect, route.cluster)
        }
        Route::NoMember(why) => format!("{why:?}: nobody is asked"),
        other => format!("{other:?}, review: {reviewed}"),
    }
}

fn reviewed(attributes: &Attributes) -> String {
    match attributes {
        Attributes::NonResource { path, verb } => format!("{verb} {path}"),
        Attributes::Resource(ResourceAttributes { verb, group, resource, subresource, name, .. }) => {
            format!("{} {resource}/{subresource} of {group} named {:?}", verb.as_str(), name.as_deref())
        }
    }
}
