//! The outcome of one request, told exactly once to all who want to know: when its response has ended or its upgrade was closed,
//! or when it is dropped. Until then it counts against the limits.

mod body;

use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::route::Parsed;
use auth::{Identity, Permit};
use http::{HeaderMap, Method, Request, StatusCode};
use tokio::time::Instant;

pub use self::body::RecordedBody;
use crate::audit::Draft;
use crate::clusters::Cluster;
use crate::connection::Connection;
use crate::error::Error;
use crate::limits::{Kind, Slot};
use crate::metrics::proxied::Topic;
use crate::metrics::{ClusterMetrics, InFlight, Verb};

/// Lives in the handler until the response head is known, then in the response body, or with the upgraded connection. Empty
/// once it was handed over.
pub struct Record(Option<Box<Open>>);

struct Open {
    /// Where the request counts: of the cluster, or of none.
    metrics: Arc<ClusterMetrics>,
    in_flight: Option<InFlight>,
    topic: Option<Topic>,
    slots: [Option<Slot>; 2],
    audit: Option<Box<Draft>>,
    verb: Verb,
    kind: Kind,
    cluster: Option<ClusterName>,
    /// 0 until a response head was made: the client went away before.
    code: u16,
    started: Instant,
    /// Watches, followed logs and upgrades: their duration says nothing about speed.
    stream: bool,
}

/// The code under which requests are counted whose client left before the response head (nginx's convention).
const CLIENT_CLOSED_REQUEST: u16 = 499;

// === impl Record ===

impl Record {
    /// `own` is where requests count that concern no registered cluster.
    pub fn start(own: &Arc<ClusterMetrics>, method: &Method) -> Self {
        let metrics = Arc::clone(own);
        let in_flight = Some(metrics.request());
        Self(Some(Box::new(Open {
            metrics,
            in_flight,
            topic: None,
            slots: [None, None],
            audit: None,
            verb: method.into(),
            kind: Kind::Short,
            cluster: None,
            code: 0,
            started: Instant::now(),
            stream: false,
        })))
    }

    /// The request was read: begins its audit. Comes before anything is taken out of it.
    pub fn asks<B>(&mut self, connection: &Connection, request: &mut Request<B>, parsed: &Parsed<'_>) {
        let Some(open) = &mut self.0 else { return };
        open.audit = Draft::begin(connection, request, parsed).map(Box::new);
    }

    /// Somebody sent it.
    pub fn is_by(&mut self, identity: &Identity) {
        if let Some(audit) = self.audit() {
            audit.is_by(identity);
        }
    }

    /// It is permitted, and gets its place among the requests of its user.
    pub fn permitted(&mut self, connection: &Connection, permit: &Permit, kind: Option<Kind>) -> Result<(), Error> {
        let Some(open) = &mut self.0 else { return Ok(()) };
        if let Some(audit) = &mut open.audit {
            audit.allowed();
        }
        let Some(kind) = kind else { return Ok(()) };
        open.kind = kind;
        open.slots[0] = connection.gateway().limits.of_user(permit.user(), kind)?;
        Ok(())
    }

    /// It failed: tells the audit why.
    pub fn failed(&mut self, error: &Error) {
        if let Some(audit) = self.audit() {
            audit.refused(error);
        }
    }

    /// The cluster the request names, for the log; it may not exist.
    pub fn will_use(&mut self, cluster: &ClusterName) {
        if let Some(open) = &mut self.0 {
            open.cluster = Some(cluster.clone());
        }
    }

    /// The cluster that exists: it gets the counts, those of `resource` among them, and a place among its requests is taken.
    pub fn uses(
        &mut self,
        connection: &Connection,
        cluster: &Cluster,
        resource: &str,
        permit: &Permit,
    ) -> Result<(), Error> {
        let Some(open) = &mut self.0 else { return Ok(()) };
        let metrics = cluster.metrics();
        open.metrics = Arc::clone(metrics);
        open.in_flight = Some(metrics.request());
        open.topic = metrics.topic(resource);
        let limits = &connection.gateway().limits;
        open.slots[1] = limits.of_cluster(cluster.name(), cluster.load(), permit.user(), open.kind)?;
        Ok(())
    }

    pub fn cluster(&self) -> &str {
        self.0.as_ref().and_then(|open| open.cluster.as_ref()).map_or("", ClusterName::as_str)
    }

    pub fn is_stream(&mut self) {
        if let Some(open) = &mut self.0 {
            open.stream = true;
        }
    }

    /// The response head is known. From here on the body keeps the record, until its end.
    pub fn answered(&mut self, status: StatusCode, headers: &mut HeaderMap) {
        let Some(open) = &mut self.0 else { return };
        open.code = status.as_u16();
        if let Some(audit) = &open.audit {
            audit.name(headers);
            if open.kind == Kind::Long && (status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS) {
                audit.started(open.code, open.started.elapsed());
            }
        }
    }

    /// The client's connection stops being HTTP: the record goes with it, and this one is empty.
    #[must_use]
    pub fn upgraded(&mut self, headers: &mut HeaderMap) -> Self {
        self.is_stream();
        self.answered(StatusCode::SWITCHING_PROTOCOLS, headers);
        let mut open = self.0.take();
        if let Some(open) = &mut open {
            open.in_flight = None;
        }
        Self(open)
    }

    fn audit(&mut self) -> Option<&mut Draft> {
        self.0.as_mut()?.audit.as_deref_mut()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let code = if self.code == 0 { CLIENT_CLOSED_REQUEST } else { self.code };
        let took = self.started.elapsed();
        self.metrics.request_done(self.verb, code);
        if !self.stream {
            self.metrics.observe_duration(took);
        }
        if let Some(topic) = &self.topic {
            self.metrics.proxied_done(topic, self.verb, code, took);
        }
        if let Some(audit) = self.audit.take() {
            audit.complete(code, took);
        }
        tracing::debug!(
            cluster = self.cluster.as_ref().map_or("", ClusterName::as_str),
            method = self.verb.method(),
            code,
            seconds = took.as_secs_f64(),
            "request done"
        );
    }
}
