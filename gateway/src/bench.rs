//! Single parts of the request path for benches. Not a stable interface: it changes with the code.

use std::fmt::Error;
use std::net::SocketAddr;

use api::accept::StatusForm;
use api::cluster_name::ClusterName;
use api::secret::Endpoint;
use http::header::AUTHORIZATION;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use prometheus_client::registry::Registry;
use tokio::runtime::{Builder, Runtime};
use traces::{Config, Metrics, Parent, PerMillion, Span, Trace, Traces};

use crate::error::Cause;
use crate::{headers, proxy, spans};

/// A request and its answer, between the phases that a trace shows.
pub struct Phases {
    to: Authority,
    server: Option<SocketAddr>,
    request: Option<Request<()>>,
    response: Option<Response<()>>,
}

/// Tracing of everything, to a collector that is not there: spans wait, and are dropped.
pub struct Tracing {
    traces: Traces,
    _runtime: Runtime,
}

/// A client's head as the member receives it: URI, headers, and `credential`. `None` if it may not
/// pass.
pub fn to_member(
    endpoint: &Endpoint,
    uri: &Uri,
    remainder: usize,
    head: &mut HeaderMap,
    client: &HeaderValue,
    credential: &HeaderValue,
) -> Option<Uri> {
    let target = proxy::rewrite(endpoint, uri, remainder).ok()?;
    headers::to_member(head, client).ok()?;
    head.insert(AUTHORIZATION, credential.clone());
    Some(target.into())
}

/// A member's headers as the client receives them.
pub fn to_client(head: &mut HeaderMap) {
    headers::to_client(head);
}

/// The response to a request for an unregistered cluster, and the length of its body.
pub fn no_such_cluster(cluster: &ClusterName) -> (StatusCode, Option<usize>) {
    let mut response = Cause::Absent.at(cluster).into_response_as(StatusForm::Json);
    (response.status(), response.body_mut().without_own_bytes())
}

// === impl Phases ===

impl Phases {
    pub fn new() -> Self {
        let request = Request::get("https://10.0.0.7:6443/version").header("traceparent", "the-callers").body(());
        Self {
            to: Authority::from_static("10.0.0.7:6443"),
            server: Some(SocketAddr::from(([10, 0, 0, 3], 8090))),
            request: request.ok(),
            response: Some(Response::new(())),
        }
    }

    /// What is done for traces in a request that is reviewed, dials its member and asks it. Without
    /// a trace that is nothing.
    pub fn run(&mut self, trace: Option<&Trace>) {
        let word = |_: &Error| "unasked";
        for name in [spans::AUTHENTICATION, spans::AUTHORIZATION] {
            spans::Step::begin(trace, name).ended(&Ok(()), word);
        }
        spans::ended(spans::dial(trace, &self.to, "direct"), &Ok(()), word);
        spans::ended(spans::shared_dial(trace, &self.to, "direct"), &Err::<(), _>(Error), word);
        spans::ended(spans::tunnel_hop(trace, "berlin", self.server), &Ok(()), word);
        let Some(request) = &mut self.request else { return };
        let span = spans::member(trace, &self.to, request);
        let outcome = self.response.take().ok_or(Error);
        spans::member_ended(span, &outcome, word);
        self.response = outcome.ok();
    }

    /// The request's headers, if it is as whole as its answer.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.response.as_ref().and(self.request.as_ref()).map(Request::headers)
    }
}

impl Default for Phases {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Tracing ===

impl Tracing {
    /// `None`: it cannot be started.
    pub fn start() -> Option<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()?;
        let (endpoint, sampling) = (Authority::from_static("127.0.0.1:1"), "1000000".parse::<PerMillion>().ok()?);
        let metrics = Metrics::register(&mut Registry::default());
        let config = Config { endpoint, sampling, parent: Parent::Nobody };
        let traces = Traces::start(&config, "bench", "0", runtime.handle(), &metrics).ok()?;
        Some(Self { traces, _runtime: runtime })
    }

    /// The first span of a request.
    pub fn begin(&self) -> Option<Span> {
        self.traces.begin("GET", &mut HeaderMap::new(), || false)
    }
}
