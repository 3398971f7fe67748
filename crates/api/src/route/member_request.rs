//! What a member will do with a proxied request: read once, from the bytes that are forwarded, for
//! all code that has to know.
//!
//! A wrong answer is a hole: one thing would be allowed, counted or written down, and another done.
//! So this follows the member step by step: `net/http` decodes the path once, then `requestinfo.go`
//! reads it, and KEP-4006 makes opening a stream a `create`. Where a server might read a path
//! otherwise than `requestinfo.go` does, the answer is the one that grants less; where none does
//! for certain, nothing is to be allowed, see [`MemberRequest::has_one_reading`].

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use super::request_info::{self, Parts};
use crate::access::{Attributes, Verb};
use crate::{path, query};

/// A request as its member's API server sees it.
///
/// A path with an invalid escape is a non-resource path, as sent: good enough to be written down,
/// and nothing to be allowed, see [`MemberRequest::can_be_decoded`]. Decoded bytes that are no
/// UTF-8 become U+FFFD, as Go's JSON encoder has them in a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRequest<'a> {
    method: &'a Method,
    /// As it is forwarded, still encoded, without the endpoint's base path.
    raw: &'a str,
    query: Option<&'a str>,
    /// As it is written: a word for metrics, which decides nothing.
    resource: &'a str,
    /// No escape is invalid.
    decodes: bool,
    upgrade: bool,
    endless: Option<Endless>,
    impersonates: bool,
}

/// What has no end of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endless {
    Watch,
    FollowedLog,
}

// === impl MemberRequest ===

impl<'a> MemberRequest<'a> {
    /// `remainder` is the path as it is forwarded, without the endpoint's base path; empty means
    /// `/`. `upgrade` says whether the request asks to switch protocols.
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
            // API servers watch and follow by GET alone
            // (`k8s.io/apiserver/pkg/endpoints/installer.go`).
            endless: endless.filter(|_| *method == Method::GET),
            // Only the exact word counts, as for the Go cluster-gateway.
            impersonates: impersonate.as_deref() == Some("true"),
        }
    }

    /// The verb to review it under as a request to a member's proxy: that of its method, and for a
    /// read that opens a stream `gained`.
    ///
    /// Never less than what the member executes. An upgrade adds to what a GET does. It takes
    /// nothing from what any other method does: a member that knows no upgrade ignores the wish
    /// (RFC 9110 §7.8) and deletes what the request deletes.
    pub fn reviewed_verb(&self, gained: Verb) -> Verb {
        match request_info::verb(self.method) {
            Verb::Get if self.connects() => gained,
            own => own,
        }
    }

    /// Whether it opens a stream into something: a console, a terminal, a port, anything that asks
    /// to switch protocols, but a watch.
    pub fn connects(&self) -> bool {
        self.upgrade && self.endless != Some(Endless::Watch)
    }

    /// Whether it asks to switch protocols.
    pub fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// Whether its answer has no end of its own: a watch, or a log that is followed. Never anything
    /// behind a `…/proxy`.
    pub fn is_endless(&self) -> bool {
        self.endless.is_some()
    }

    /// Whether its caller wishes to act on the member as himself (`impersonate=true`).
    pub fn impersonates(&self) -> bool {
        self.impersonates
    }

    /// Whether a pod, Service or kubelet may answer instead of the member. Errs towards true: where
    /// the word stands does not matter, because a member, or what stands before it, may collapse
    /// what we forward as it is.
    pub fn is_behind_proxy(&self) -> bool {
        path::is_behind_proxy(self.raw)
    }

    /// Whether it is Open Cluster Management's way to a Service of the member, for which no API
    /// server has a meaning: `services/<service>/proxy-service`.
    pub fn is_of_a_workload(&self) -> bool {
        decoded(self.raw).is_some_and(|path| {
            Parts::of(self.method, &path).is_some_and(|parts| {
                (parts.group, parts.resource, parts.subresource) == ("", "services", "proxy-service")
            })
        })
    }

    /// Whether its query may hold what is to be kept from logs: commands, or words for a workload.
    /// Errs as [`MemberRequest::is_behind_proxy`].
    pub fn may_act(&self) -> bool {
        path::may_act(self.raw)
    }

    /// Whether it may be sent once more after a 401, if it has no body. The member itself did
    /// nothing then (RFC 9110 §15.5.2); a workload behind it says what it pleases.
    pub fn may_be_repeated(&self) -> bool {
        self.method.is_safe() || !self.is_behind_proxy()
    }

    /// The resource it is about, as it is written there; empty if it is about none. For metrics:
    /// nothing may be decided by it.
    pub fn resource(&self) -> &'a str {
        self.resource
    }

    /// Whether two hexadecimal digits follow each percent sign of the path. A review must not speak
    /// of a path for which that is not so: kube-apiserver refuses it before it looks at anything
    /// (`net/url`), but other servers, and proxies in front of any, mend it into one without a
    /// review.
    pub fn can_be_decoded(&self) -> bool {
        self.decodes
    }

    /// Whether every reader of its path finds what [`MemberRequest::attributes`] says. Proxies in
    /// front of an API server join slashes or take `\` for one (nginx `merge_slashes`, Envoy
    /// `merge_slashes` and `normalize_path`): `pods/p//log` is a pod for `requestinfo.go`, and a
    /// log once it has passed. A review must not speak of a path for which that is not so.
    ///
    /// Slashes at both ends change nothing, nor does what follows a subresource `proxy`, which is
    /// the workload's.
    pub fn has_one_reading(&self) -> bool {
        decoded(self.raw).is_some_and(|path| {
            let path = path.trim_matches('/');
            let proxied = Parts::of(self.method, path).filter(|parts| parts.subresource == "proxy");
            let read = proxied.and_then(|parts| path.strip_suffix(parts.rest)).unwrap_or(path);
            !may_be_read_otherwise(read)
        })
    }

    /// Its attributes, for a second review on the hub and for the audit log. A GET of `pods/exec`,
    /// `pods/attach` or `pods/portforward` that asks to switch protocols is a `create`
    /// (kube-apiserver since 1.35).
    pub fn attributes(&self) -> Attributes {
        let Some(path) = decoded(self.raw) else {
            return Attributes::NonResource { path: Arc::from(self.raw), verb: request_info::lower_case(self.method) };
        };
        let mut attributes = request_info::attributes(self.method, &path, self.query);
        if let Attributes::Resource(resource) = &mut attributes
            && self.upgrade
            // Without a name it is a list for the rules, and still an exec for a proxy that
            // collapses slashes.
            && matches!(resource.verb, Verb::Get | Verb::List | Verb::Watch)
            && (&*resource.group, &*resource.resource) == ("", "pods")
            && matches!(&*resource.subresource, "exec" | "attach" | "portforward")
        {
            resource.verb = Verb::Create;
        }
        attributes
    }
}

/// The resource, and whether there is an end to it, where the query asks to `watch` and to
/// `follow`.
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

/// Whether some server, or what stands before it, may take the decoded `path` for another one: what
/// collapses slashes, or takes `\` for one, finds a name where `requestinfo.go` finds none.
fn may_be_read_otherwise(path: &str) -> bool {
    path.contains('\\') || path.trim_matches('/').contains("//")
}

/// `None` where the decoder of this crate would let an escape pass as text.
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
