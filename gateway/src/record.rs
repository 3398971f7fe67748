//! The outcome of one request, reported exactly once to metrics, audit log, access log and trace:
//! when its response or its upgrade has ended, or when it is dropped. Until then the request counts
//! against the limits.
//!
//! A record is filled in this order, which the types enforce: [`Record::started`],
//! [`Record::identified`], [`Identified::admitted`], [`Admitted::sent_to`], [`Record::answered`].
//! They are five, because a request may fail between any two. Beside the order are the report of a
//! failure ([`Record::refused`], [`Record::failed`]), and the body after the head
//! ([`Record::continues`]).

mod access;
mod sending;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use api::cluster_name::ClusterName;
use api::route::Dialect;
use auth::{Identity, Permission};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Body;
use tokio::time::Instant;
use traces::{Span, Trace};

use self::access::AccessLine;
pub use self::access::Failed;
pub use self::sending::Sending;
use crate::audit::Draft;
use crate::body::ResponseBody;
use crate::clusters::Cluster;
use crate::error::{Error, Refusal, Side};
use crate::limits::{Kind, Limits, LoadPermit, TooMany};
use crate::metrics::proxied::Topic;
use crate::metrics::{ClusterMetrics, HttpMethod, InFlight};
use crate::needs::RequestNeeds;
use crate::request::Head;
use crate::spans;
use crate::upstream::Truncated;

/// Held by the handler until the response head is known, then by the response body or the upgraded
/// connection.
pub struct Record(Box<Open>);

/// A request whose user is known.
pub struct Identified<'a>(&'a mut Open);

/// The body of every response while it is sent, with the record that ends with it.
pub struct RecordedBody {
    body: ResponseBody,
    /// `None` if an upgraded connection has the record.
    record: Option<Record>,
}

/// A request that is allowed, and holds one of its user's permits.
pub struct Admitted<'a>(&'a mut Open);

/// A response when its head is sent.
pub struct Answered<'a> {
    pub status: StatusCode,
    pub headers: &'a mut HeaderMap,
    /// A watch, a followed log, or an upgrade: its duration shows nothing about speed.
    pub is_stream: bool,
    /// The connection has left HTTP.
    pub is_upgraded: bool,
    /// Why this is a refusal, and not a member's response.
    pub refusal: Option<Refusal>,
}

struct Open {
    /// The metrics in which the request counts: a cluster's, or those without one.
    metrics: Arc<ClusterMetrics>,
    in_flight: Option<InFlight>,
    stream: Option<InFlight>,
    topic: Option<Topic>,
    permits: [Option<LoadPermit>; 2],
    audit: Option<Box<Draft>>,
    access: Option<Box<AccessLine>>,
    /// None if the request is not traced.
    span: Option<Span>,
    verb: HttpMethod,
    dialect: Dialect,
    kind: Option<Kind>,
    /// 0 until there is a response head. If none comes, the client has left before.
    code: u16,
    side: Option<Side>,
    started: Instant,
    is_stream: bool,
    /// The caller may do this, and has one of its user's permits.
    is_admitted: bool,
    /// Set while more than the head of a response has to be sent.
    sending: Option<Sending>,
}

/// The code for requests whose client left before the response head (nginx's convention).
pub const CLIENT_CLOSED_REQUEST: u16 = 499;

// === impl Record ===

impl Record {
    /// Starts the record of a request that was read. Must run before anything is removed from the
    /// request. Counts it in the metrics without a cluster.
    pub fn started<B>(
        gateway: &RequestNeeds,
        audit: Option<Draft>,
        span: Option<Span>,
        request: &Request<B>,
        head: &Head<'_>,
    ) -> Self {
        let metrics = Arc::clone(&gateway.own_metrics);
        let in_flight = Some(metrics.request());
        Self(Box::new(Open {
            metrics,
            in_flight,
            stream: None,
            topic: None,
            permits: [None, None],
            audit: audit.map(Box::new),
            access: AccessLine::begin(head),
            span,
            verb: request.method().into(),
            dialect: head.dialect(),
            kind: head.kind,
            code: 0,
            side: None,
            started: Instant::now(),
            is_stream: false,
            is_admitted: false,
            sending: None,
        }))
    }

    /// Records the user.
    pub fn identified(&mut self, identity: &Identity) -> Identified<'_> {
        let open = &mut *self.0;
        if let Some(audit) = &mut open.audit {
            audit.identified(identity);
        }
        if let Some(access) = &mut open.access {
            access.identified(identity);
        }
        Identified(open)
    }

    /// The parent of the request's spans, if it is traced.
    pub fn trace(&self) -> Option<Trace> {
        self.0.span.as_ref().map(|span| span.trace().clone())
    }

    /// Records that the request fails at `side`. If that is not the caller's own mistake, and came
    /// before [`Admitted::sent_to`], the request counts for the cluster that it names, if that
    /// exists: a failed review is a failure on the way to it.
    ///
    /// Returns the cluster in whose share of the log the failure counts: the named one, if the
    /// caller may do that there, and it is registered. Callers choose all other names.
    pub fn refused<'a>(
        &mut self,
        side: Side,
        named: Option<&'a ClusterName>,
        gateway: &RequestNeeds,
    ) -> Option<&'a ClusterName> {
        let open = &mut *self.0;
        // If it counts for a cluster already, the name may belong to another owner by now. A
        // caller's mistake shows nothing about the cluster that it names.
        let is_uncounted = side != Side::Caller && Arc::ptr_eq(&open.metrics, &gateway.own_metrics);
        if let Some(metrics) = named.filter(|_| is_uncounted).and_then(|name| gateway.clusters.metrics(name)) {
            open.metrics = metrics;
        }
        open.share(named, &gateway.own_metrics)
    }

    /// Reports a failure that the caller did not cause to the log, and to readers of the cluster's
    /// traffic.
    pub fn failed(&self, head: &Head<'_>, failed: &Failed<'_>) {
        self.0.failed(AccessLine::of(&head.parsed), failed);
    }

    /// Records the response head. From here on the body keeps the record until its end.
    pub fn answered(&mut self, answered: Answered<'_>) {
        let Answered { status, headers, is_stream, is_upgraded, refusal } = answered;
        let open = &mut *self.0;
        open.code = status.as_u16();
        open.is_stream = is_stream;
        if is_upgraded {
            open.in_flight = None;
        }
        if is_stream && !is_upgraded {
            open.stream = Some(open.metrics.stream());
        }
        open.side = refusal.as_ref().map(|refusal| refusal.side);
        if let Some(side) = open.side {
            open.metrics.failed(side);
        }
        let Some(audit) = &mut open.audit else { return };
        if let Some(refusal) = refusal {
            audit.refused(refusal);
        }
        audit.name(headers);
        if open.kind == Some(Kind::Long) && (status.is_success() || is_upgraded) {
            audit.started(open.code, open.started.elapsed());
        }
    }

    /// The head of `body` is sent. If the rest is cut off, that is reported, unless the response is
    /// a refusal.
    pub fn continues(&mut self, body: &ResponseBody, sending: impl FnOnce() -> Sending) {
        if self.0.side.is_none() && !body.is_end_stream() {
            self.0.sending = Some(sending());
        }
    }

    /// The member's response broke off.
    fn cut_off(&mut self, error: &Truncated) {
        let open = &mut *self.0;
        let Some(sending) = open.sending.take().filter(|_| !error.is_given_up()) else { return };
        let line = sending.line();
        if line.cluster().is_none_or(|name| sending.is_current(name, &open.metrics)) {
            open.cut(&sending, line, Side::Member, &error.to_string());
        }
    }
}

// === impl RecordedBody ===

impl RecordedBody {
    pub fn new(body: ResponseBody, record: Option<Record>) -> Self {
        Self { body, record }
    }

    /// See [`ResponseBody::is_stream`].
    pub fn is_stream(&self) -> bool {
        self.body.is_stream()
    }
}

impl Body for RecordedBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if let (Poll::Ready(Some(Err(error))), Some(record)) = (&polled, &mut this.record) {
            record.cut_off(error);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Identified ===

impl<'a> Identified<'a> {
    /// It is allowed, and takes one of its user's permits. Not before: accounts of one namespace
    /// are one user, and those that may do nothing would take the permits of those that may.
    /// Reviews that wait have a share of their own.
    pub fn admitted(self, limits: &Limits, permission: &Permission) -> Result<Admitted<'a>, TooMany> {
        let Self(open) = self;
        if let Some(audit) = &mut open.audit {
            audit.allowed();
        }
        if let Some(kind) = open.kind {
            open.permits[0] = limits.of_user(permission.user(), kind)?;
        }
        open.is_admitted = true;
        Ok(Admitted(open))
    }
}

// === impl Admitted ===

impl Admitted<'_> {
    /// Records that the request goes to `cluster`: counts it there, also for `resource`, and takes
    /// one of the cluster's permits.
    pub fn sent_to(
        self,
        cluster: &Cluster,
        resource: &str,
        limits: &Limits,
        permission: &Permission,
    ) -> Result<(), TooMany> {
        let Self(open) = self;
        let metrics = cluster.metrics();
        open.metrics = Arc::clone(metrics);
        open.in_flight = Some(metrics.request());
        open.topic = metrics.topic(resource);
        if let Some(kind) = open.kind {
            open.permits[1] = limits.of_cluster(cluster.name(), cluster.load(), permission.user(), kind)?;
        }
        Ok(())
    }
}

// === impl Open ===

impl Open {
    /// See [`Record::refused`]. A request counts in `own` while its cluster is not known to exist.
    fn share<'a>(&self, named: Option<&'a ClusterName>, own: &Arc<ClusterMetrics>) -> Option<&'a ClusterName> {
        named.filter(|_| self.is_admitted && !Arc::ptr_eq(&self.metrics, own))
    }

    /// Reports that a response was cut off after its head.
    fn cut(&mut self, sending: &Sending, line: AccessLine, side: Side, text: &str) {
        self.side = Some(side);
        if let Some(audit) = &mut self.audit {
            audit.cut_off(side);
        }
        sending.gateway.metrics.response_cut(side.as_str());
        let share = self.share(line.cluster(), &sending.gateway.own_metrics);
        if let Some(suppressed) = sending.gateway.failure_log.due(share, side) {
            self.failed(line, &Failed { user: sending.user(), side, code: self.code, text, suppressed });
        }
    }

    fn failed(&self, line: AccessLine, failed: &Failed<'_>) {
        let took = self.started.elapsed();
        line.write_failed(failed, took);
        // Few are kept, and callers without any right there can fail before.
        if self.is_admitted {
            self.metrics.recent().add(line.recent(failed, took));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(sending) = self.sending.take()
            && sending.gave_way()
        {
            self.cut(&sending, sending.line(), Side::Gateway, &Error::HeldTooMuch.to_string());
        }
        let code = if self.code == 0 { CLIENT_CLOSED_REQUEST } else { self.code };
        let took = self.started.elapsed();
        self.metrics.request_done(self.dialect, self.verb, code);
        if !self.is_stream {
            self.metrics.observe_duration(took);
        }
        if let Some(topic) = &self.topic {
            self.metrics.proxied_done(topic, self.verb, code, took);
        }
        if let Some(access) = &self.access {
            access.write(code, self.side, took);
        }
        if let Some(span) = &mut self.span {
            spans::request_ended(span, code, self.side.map(Side::as_str));
        }
        if let Some(audit) = self.audit.take() {
            audit.complete(code, took);
        }
    }
}

#[cfg(test)]
mod tests;
