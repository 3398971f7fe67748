//! Collects a request's audit event while it is served, before anything is removed from the request
//! or rewritten.
//!
//! All requests are audited, including those of unknown and refused users. Probes and metrics are
//! not: they show nothing about any user and come every second.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::path;
use api::route::{Dialect, Parsed, Route};
use audit::{AUDIT_ID, AuditId, Decision, Event, Query, Sink, Stage, redacted, source_ips, user_agent};
use auth::Identity;
use http::{HeaderMap, HeaderValue, Request};

use crate::connection::Connection;
use crate::error::{Forbidden, Refusal, Side};

/// A request's event in the making.
pub struct Draft {
    event: Event,
    sink: Sink,
}

// === impl Draft ===

impl Draft {
    /// `None` if the request is not audited. A request without an audit ID gets one, and an invalid
    /// one is replaced, so that a member's log has the same ID as ours. Through a hub it has the
    /// hub's ID.
    pub fn begin<B>(connection: &Connection, request: &mut Request<B>, parsed: &Parsed<'_>) -> Option<Self> {
        let sink = connection.gateway().audit.clone()?;
        if matches!(parsed.route, Route::Probe(_) | Route::Metrics) {
            return None;
        }
        let (uri, headers) = (request.uri(), request.headers());
        let (cluster, dialect, may_act) = match &parsed.route {
            Route::Proxy(proxy) => (Some(proxy.cluster.shared()), proxy.dialect.word(), proxy.asks.may_act()),
            Route::Every(_) => (None, Dialect::Karmada.word(), false),
            _ => (None, None, path::may_act(uri.path())),
        };
        let detail = if may_act { Query::KeysOnly } else { Query::Usual };
        let mut event = Event {
            id: AuditId::of(headers),
            stage: Stage::ResponseComplete,
            request_uri: redacted(uri.path(), uri.query(), detail),
            verb: Cow::Borrowed(""),
            user: None,
            impersonated: None,
            source_ips: source_ips(headers, connection.peer().address().ip()),
            user_agent: user_agent(headers),
            object: None,
            code: 0,
            received: SystemTime::now(),
            latency: Duration::ZERO,
            cluster,
            dialect,
            decision: None,
            side: None,
        };
        match &parsed.route {
            Route::Proxy(proxy) => event.asks(&proxy.asks.attributes()),
            _ => event.asks(&parsed.attributes),
        }
        if let Ok(id) = HeaderValue::from_str(event.id.as_str()) {
            // A full header map accepts no more (`http::HeaderMap`); such a request is refused
            // right after this.
            let _ = request.headers_mut().try_insert(AUDIT_ID, id);
        }
        Some(Self { event, sink })
    }

    pub fn identified(&mut self, identity: &Identity) {
        let Identity { user, impersonator } = identity;
        self.event.user = Some(Arc::clone(impersonator.as_ref().unwrap_or(user)));
        self.event.impersonated = impersonator.is_some().then(|| Arc::clone(user));
    }

    pub fn allowed(&mut self) {
        self.event.decision = Some(Decision::Allow);
    }

    /// Records where the request failed, and the user and reason of a refusal.
    pub fn refused(&mut self, refusal: Refusal) {
        self.event.side = Some(refusal.side.as_str());
        if let Some(Forbidden { user, reason }) = refusal.forbidden {
            self.event.user.get_or_insert(user);
            self.event.decision = Some(Decision::forbid(&reason));
        }
    }

    /// Records who cut the response off after its head.
    pub fn cut_off(&mut self, side: Side) {
        self.event.side = Some(side.as_str());
    }

    /// Sends the client the request's ID, unless the member did.
    pub fn name(&self, headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::from_str(self.event.id.as_str()) {
            headers.entry(AUDIT_ID).or_insert(id);
        }
    }

    /// The response head is being sent, and the body will last for some time.
    pub fn started(&self, code: u16, latency: Duration) {
        self.sink.record(Box::new(Event { stage: Stage::ResponseStarted, code, latency, ..self.event.clone() }));
    }

    /// The response has ended.
    pub fn complete(self, code: u16, latency: Duration) {
        self.sink.record(Box::new(Event { code, latency, ..self.event }));
    }
}
