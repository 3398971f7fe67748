//! What a member will do with a proxied request: read once, from the forwarded bytes, for all code
//! that has to know.
//!
//! An error here is a security hole: the gateway would allow, count or log one action, and the
//! member would carry out another. So this follows the member step by step: `net/http` decodes the
//! path once, then `requestinfo.go` reads it, and KEP-4006 makes opening a stream a `create`. Where
//! a server might read a path in another way than `requestinfo.go`, the result is the one that
//! grants less. Where no reading is certain, nothing may be allowed, see
//! [`MemberRequest::has_one_reading`].

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use super::request_info::{self, Parts};
use crate::access::{Attributes, Verb};
use crate::{path, query};

/// A request from the view of its member's API server.
///
/// A path with an invalid escape is a non-resource path with its raw text: good enough for logs,
/// but not for permissions, see [`MemberRequest::can_be_decoded`]. Decoded bytes that are not UTF-8
/// become U+FFFD, as in a review from Go's JSON encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRequest<'a> {
    method: &'a Method,
    /// As it is forwarded: still encoded, and without the endpoint's base path.
    raw: &'a str,
    query: Option<&'a str>,
    /// As it is spelled. A label for metrics, which decides nothing.
    resource: &'a str,
    /// Whether no escape is invalid.
    decodes: bool,
    upgrade: bool,
    endless: Option<Endless>,
    impersonates: bool,
}

/// A response that has no end of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endless {
    Watch,
    FollowedLog,
}

// === impl MemberRequest ===

impl<'a> MemberRequest<'a> {
    /// `remainder` is the path as it is forwarded, without the endpoint's base path. Empty means
    /// `/`. `upgrade` is whether the request asks to switch protocols.
    pub fn read(method: &'a Method, remainder: &'a str, query: Option<&'a str>, upgrade: bool) -> Self {
        let raw = if remainder.is_empty() { "/" } else { remainder };
        let [watch, follow, impersonate] = match query {
            Some(_) => query::firsts(query, ["watch", "follow", "impersonate"]),
            None => [None, None, None],
        };
        let flag = |value: Option<Cow<'_, str>>| value.as_deref().is_some_and(query::truth);
        let asks = (flag(watch), flag(follow));
        let (resource, endless) = outlined(method, raw, asks);
        let (decodes, endless) = match decoded(raw) {
            Some(Cow::Borrowed(_)) => (true, endless.filter(|_| !may_be_read_otherwise(raw))),
            Some(Cow::Owned(path)) => (true, outlined(method, &path, asks).1.filter(|_| !may_be_read_otherwise(&path))),
            None => (false, None),
        };
        Self {
            method,
            raw,
            query,
            resource,
            decodes,
            upgrade,
            // API servers only watch and follow on GET
            // (`k8s.io/apiserver/pkg/endpoints/installer.go`).
            endless: endless.filter(|_| *method == Method::GET),
            // Only the exact word counts, as for the Go cluster-gateway.
            impersonates: impersonate.as_deref() == Some("true"),
        }
    }

    /// The verb to review for a request to a member's proxy: its method's verb, or `gained` for a
    /// read that opens a stream.
    ///
    /// Never a weaker verb than what the member carries out. An upgrade adds to a GET. It does not
    /// weaken any other method: a member that does not know the upgrade ignores it (RFC 9110 §7.8)
    /// and still deletes what the request deletes.
    pub fn reviewed_verb(&self, gained: Verb) -> Verb {
        match request_info::verb(self.method) {
            Verb::Get if self.connects() => gained,
            own => own,
        }
    }

    /// Whether it opens a stream into something: a console, a terminal, a port, or any other
    /// request to switch protocols except a watch.
    pub fn connects(&self) -> bool {
        self.upgrade && !self.is_watch()
    }

    /// Whether it asks to switch protocols.
    pub fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// Whether its response has no end of its own: a watch, or a followed log. Never for a path
    /// behind `…/proxy`.
    pub fn is_endless(&self) -> bool {
        self.endless.is_some()
    }

    /// Whether its response is a watch, which clients begin again after a clean end.
    pub fn is_watch(&self) -> bool {
        self.endless == Some(Endless::Watch)
    }

    /// Whether the caller wants to act on the member under the caller's own identity
    /// (`impersonate=true`).
    pub fn impersonates(&self) -> bool {
        self.impersonates
    }

    /// Whether a pod, Service or kubelet may respond instead of the member. Errs towards true. The
    /// position of the word does not matter, because a member, or a proxy in front of it, may
    /// collapse the path that we forward unchanged.
    pub fn is_behind_proxy(&self) -> bool {
        path::is_behind_proxy(self.raw)
    }

    /// Whether it is Open Cluster Management's path to a Service of the member,
    /// `services/<service>/proxy-service`, which means nothing to an API server.
    pub fn is_of_a_workload(&self) -> bool {
        decoded(self.raw).is_some_and(|path| {
            Parts::of(self.method, &path).is_some_and(|parts| {
                (parts.group, parts.resource, parts.subresource) == ("", "services", "proxy-service")
            })
        })
    }

    /// Whether its query may contain text that must not be logged: commands, or parameters for a
    /// workload. Errs towards true, like [`MemberRequest::is_behind_proxy`].
    pub fn may_act(&self) -> bool {
        path::may_act(self.raw)
    }

    /// Whether it may be sent again after a 401 or a refused impersonation, if it has no body. The
    /// member itself did nothing then (RFC 9110 §15.5.2), but a workload behind it may respond with
    /// any status.
    pub fn may_be_repeated(&self) -> bool {
        self.method.is_safe() || !self.is_behind_proxy()
    }

    /// The resource as it is spelled in the path. Empty if there is none. For metrics: nothing may
    /// be decided by it.
    pub fn resource(&self) -> &'a str {
        self.resource
    }

    /// Whether two hexadecimal digits follow each percent sign in the path. Otherwise no review may
    /// use the path: kube-apiserver refuses it at once (`net/url`), but other servers, and proxies
    /// in front, repair it into a path that was not reviewed.
    pub fn can_be_decoded(&self) -> bool {
        self.decodes
    }

    /// Whether every reader of its path agrees with [`MemberRequest::attributes`]. Proxies in front
    /// of an API server merge slashes, or take `\` for a slash (nginx `merge_slashes`, Envoy
    /// `merge_slashes` and `normalize_path`): `pods/p//log` is a pod for `requestinfo.go`, and a
    /// log behind such a proxy. Without agreement, no review may use the path.
    ///
    /// Slashes at both ends change nothing. Neither does the path after a subresource `proxy`,
    /// which belongs to the workload.
    pub fn has_one_reading(&self) -> bool {
        decoded(self.raw).is_some_and(|path| {
            let path = path.trim_matches('/');
            let proxied = Parts::of(self.method, path).filter(|parts| parts.subresource == "proxy");
            let read = proxied.and_then(|parts| path.strip_suffix(parts.rest)).unwrap_or(path);
            !may_be_read_otherwise(read)
        })
    }

    /// The attributes for a second review on the hub and for the audit log. A GET of `pods/exec`,
    /// `pods/attach` or `pods/portforward` that asks to switch protocols is a `create`
    /// (kube-apiserver since 1.35).
    pub fn attributes(&self) -> Attributes {
        let Some(path) = decoded(self.raw) else {
            return Attributes::NonResource { path: Arc::from(self.raw), verb: request_info::lower_case(self.method) };
        };
        let mut attributes = request_info::attributes(self.method, &path, self.query);
        if let Attributes::Resource(resource) = &mut attributes
            && self.upgrade
            // Without a name, it is a list by the rules, but still an exec behind a proxy that
            // merges slashes.
            && matches!(resource.verb, Verb::Get | Verb::List | Verb::Watch)
            && (&*resource.group, &*resource.resource) == ("", "pods")
            && matches!(&*resource.subresource, "exec" | "attach" | "portforward")
        {
            resource.verb = Verb::Create;
        }
        attributes
    }
}

/// The resource, and why the response has no end, if it has none. `watch` and `follow` are the
/// query's flags.
fn outlined<'p>(method: &Method, path: &'p str, (watch, follow): (bool, bool)) -> (&'p str, Option<Endless>) {
    let Some(parts) = Parts::of(method, path) else { return ("", None) };
    let endless = if parts.verb(watch) == Verb::Watch && parts.subresource.is_empty() {
        Some(Endless::Watch)
    } else if follow && (parts.group, parts.resource, parts.subresource) == ("", "pods", "log") {
        Some(Endless::FollowedLog)
    } else {
        None
    };
    (parts.resource, endless)
}

/// Whether a server, or a proxy in front of it, may read the decoded `path` in another way: one
/// that merges slashes, or takes `\` for a slash, finds a name where `requestinfo.go` finds none.
fn may_be_read_otherwise(path: &str) -> bool {
    path.contains('\\') || path.trim_matches('/').contains("//")
}

/// `None` for an invalid escape, which this crate's decoder would keep as text.
fn decoded(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('%') {
        return Some(Cow::Borrowed(raw));
    }
    let mut escapes = raw.split('%').skip(1).map(|rest| rest.as_bytes().get(..2));
    let valid = escapes.all(|digits| digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)));
    valid.then(|| percent_decode_str(raw).decode_utf8_lossy())
}

#[cfg(test)]
mod tests;
