//! The outcome of one request, counted exactly once: when its response has ended, or when it is dropped.

use std::sync::Arc;

use api::cluster_name::ClusterName;
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::metrics::{ClusterMetrics, InFlight};

/// Lives in the handler until the response head is known, then in the response body.
pub struct Record {
    metrics: Arc<ClusterMetrics>,
    in_flight: InFlight,
    method: &'static str,
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
        let in_flight = metrics.request();
        Self {
            metrics,
            in_flight,
            method: label(method),
            cluster: None,
            code: 0,
            started: Instant::now(),
            stream: false,
        }
    }

    /// The cluster the request names, for the log; it may not exist.
    pub fn will_use(&mut self, cluster: &ClusterName) {
        self.cluster = Some(cluster.clone());
    }

    /// The cluster that exists: it gets the counts.
    pub fn uses(&mut self, metrics: &Arc<ClusterMetrics>) {
        self.metrics = Arc::clone(metrics);
        self.in_flight = self.metrics.request();
    }

    pub fn cluster(&self) -> &str {
        self.cluster.as_ref().map_or("", ClusterName::as_str)
    }

    pub fn is_stream(&mut self) {
        self.stream = true;
    }

    /// The response head is known. From here on the body keeps the record, until its end.
    pub fn answered(&mut self, status: StatusCode) {
        self.code = status.as_u16();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let code = if self.code == 0 { CLIENT_CLOSED_REQUEST } else { self.code };
        self.metrics.request_done(self.method, code);
        if !self.stream {
            self.metrics.observe_duration(self.started.elapsed().as_secs_f64());
        }
        tracing::debug!(
            cluster = self.cluster(),
            method = self.method,
            code,
            seconds = self.started.elapsed().as_secs_f64(),
            "request done"
        );
    }
}

fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
