//! The spans of a traced request: their names and attributes.
//!
//! Attributes follow OpenTelemetry's semantic conventions for HTTP; those without a standard name
//! begin with `cluster_gateway.`. None contains a credential, a query or a user's name. Every span
//! needs a [`Trace`]: requests that are not traced have none, and each of their phases costs one
//! check of an empty option.

use std::fmt::Display;
use std::net::SocketAddr;

use api::cluster_name::ClusterName;
use http::uri::Authority;
use http::{Method, Request, Response};
use traces::{Kind, Span, Trace, Traces};

use crate::metrics::HttpMethod;

/// Authentication of the caller.
pub const AUTHENTICATION: &str = "authentication";
/// The access review.
pub const AUTHORIZATION: &str = "authorization";
/// What a request for a member names on the gateway.
const PROXIED: &str = "clustergateways/proxy";
const MEMBER: &str = "member";
const DIAL: &str = "dial";
const TUNNEL_HOP: &str = "tunnel hop";

/// The name in kube-apiserver's spans and in our audit log.
const AUDIT_ID: &str = "audit-id";
const CLUSTER: &str = "k8s.cluster.name";
const METHOD: &str = "http.request.method";
const STATUS: &str = "http.response.status_code";
const PATH: &str = "url.path";
const HOST: &str = "server.address";
const PORT: &str = "server.port";

/// A phase of a request, if the request is traced.
pub struct Step(Option<Span>);

/// The span of the whole request, if it is traced. Must be made before the path is removed from it,
/// and after it has its audit ID. `is_hubs` returns whether the request comes from the hub.
pub fn request<B>(
    traces: &Traces,
    request: &mut Request<B>,
    cluster: Option<&ClusterName>,
    is_hubs: impl FnOnce() -> bool,
) -> Option<Span> {
    let method = method(request.method());
    let mut span = traces.begin(method, request.headers_mut(), is_hubs)?;
    span.set(METHOD, method);
    span.set_text(PATH, request.uri().path());
    if let Some(cluster) = cluster {
        span.rename(format!("{method} {PROXIED}"));
        span.set(CLUSTER, cluster.as_str().to_owned());
    }
    if let Some(id) = request.headers().get(AUDIT_ID).and_then(|id| id.to_str().ok()) {
        span.set_text(AUDIT_ID, id);
    }
    Some(span)
}

/// Ends the request's span. `side`: where it failed, if no member responded.
pub fn request_ended(span: &mut Span, code: u16, side: Option<&'static str>) {
    span.set(STATUS, i64::from(code));
    if let Some(side) = side {
        span.set("cluster_gateway.side", side);
    }
    // A failure that the caller caused is not the gateway's.
    if code >= 500 { span.failed(code.to_string(), "") } else { span.ended() }
}

/// The span of an exchange with a member, from the first attempt to get a connection until the head
/// of its response. The member gets the span's context, so that its own spans become children of
/// this one.
pub fn member<B>(trace: Option<&Trace>, to: &Authority, request: &mut Request<B>) -> Option<Span> {
    let trace = trace?;
    let mut span = trace.span(MEMBER, Kind::Client);
    span.set(METHOD, method(request.method()));
    span.set_text(PATH, request.uri().path());
    address(&mut span, to);
    span.trace().write(request.headers_mut());
    Some(span)
}

/// The member has responded, or will not.
pub fn member_ended<B, E: Display>(
    span: Option<Span>,
    outcome: &Result<Response<B>, E>,
    word: impl FnOnce(&E) -> &'static str,
) {
    let Ok(response) = outcome else {
        ended(span, outcome, word);
        return;
    };
    let Some(mut span) = span else { return };
    let status = response.status();
    span.set(STATUS, i64::from(status.as_u16()));
    // For the sender of a request, its own mistake is a failure too (semantic conventions).
    if status.is_client_error() || status.is_server_error() {
        span.failed(status.as_u16().to_string(), "");
    } else {
        span.ended();
    }
}

/// The span of a new connection to a member: TCP or its substitute, TLS and the start of HTTP.
pub fn dial(trace: Option<&Trace>, to: &Authority, by: &'static str) -> Option<Span> {
    let mut span = trace?.span(DIAL, Kind::Client);
    address(&mut span, to);
    span.set("cluster_gateway.dial.by", by);
    Some(span)
}

/// The same as [`dial`], for a dial that another request began and this one waits for.
pub fn shared_dial(trace: Option<&Trace>, to: &Authority, by: &'static str) -> Option<Span> {
    let mut span = dial(trace, to, by)?;
    span.set("cluster_gateway.dial.shared", true);
    Some(span)
}

/// The span of asking one tunnel-server, or this process, for a stream to a member.
pub fn tunnel_hop(trace: Option<&Trace>, cluster: &str, server: Option<SocketAddr>) -> Option<Span> {
    let mut span = trace?.span(TUNNEL_HOP, Kind::Client);
    span.set(CLUSTER, cluster.to_owned());
    if let Some(server) = server {
        span.set("network.peer.address", server.ip().to_string());
        span.set("network.peer.port", i64::from(server.port()));
    }
    Some(span)
}

/// Ends a span with its outcome; a failure has a word and a text.
pub fn ended<T, E: Display>(span: Option<Span>, outcome: &Result<T, E>, word: impl FnOnce(&E) -> &'static str) {
    let Some(mut span) = span else { return };
    match outcome {
        Ok(_) => span.ended(),
        Err(error) => span.failed(word(error), &error.to_string()),
    }
}

fn address(span: &mut Span, of: &Authority) {
    span.set_text(HOST, of.host());
    span.set(PORT, i64::from(of.port_u16().unwrap_or(443)));
}

/// Callers choose methods, but span names must be few.
fn method(method: &Method) -> &'static str {
    match HttpMethod::from(method) {
        HttpMethod::Other => "_OTHER",
        known => known.method(),
    }
}

// === impl Step ===

impl Step {
    /// Begins now.
    pub fn begin(trace: Option<&Trace>, name: &'static str) -> Self {
        Self(trace.map(|trace| trace.span(name, Kind::Internal)))
    }

    /// Ends with `outcome`. Its text stays out, because it may name the caller.
    pub fn ended<T, E>(self, outcome: &Result<T, E>, word: impl FnOnce(&E) -> &'static str) {
        if let Some(mut span) = self.0 {
            match outcome {
                Ok(_) => span.ended(),
                Err(error) => span.failed(word(error), ""),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::mem::size_of;

    use super::*;
    use crate::bench::Phases;

    /// Tracing is off by default, and must then cost nothing: without a trace, this module
    /// allocates nothing, makes no span, and does not touch the request.
    #[test]
    fn what_is_not_traced_takes_no_memory_and_stays_as_it_is() {
        let mut phases = Phases::new();
        let taken = allocation_counter::measure(|| phases.run(black_box(None)));
        assert_eq!(taken.count_total, 0, "{taken:?}");
        let headers = phases.headers().unwrap();
        assert!(headers.len() == 1 && headers["traceparent"] == "the-callers", "{headers:?}");
        // A look at an empty option, which takes no more room than a pointer in whatever waits.
        let sizes = [size_of::<Option<Span>>(), size_of::<Option<Trace>>(), size_of::<Step>()];
        assert!(sizes.iter().all(|size| *size <= size_of::<usize>()), "{sizes:?}");
    }
}
