//! A small HTTP/1.1 endpoint for probes, metrics and an operator's other requests.
//!
//! It accepts few connections, each for a bounded time. Clients do not authenticate. At the limit,
//! it closes the oldest connection of the address with the most connections, so that silent
//! connections do not delay a probe.

pub mod nearby;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use net::accept;
use net::listen::{self, Sharing};
use net::pending::{Pending, PendingPermit};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::readiness::Readiness;

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 64;
/// Most connections from one address: a kubelet that probes, a scraper, or a person with `curl`.
const MOST_OF_ADDRESS: usize = 16;
/// Time limit of one connection, for all its requests.
const LONGEST_CONNECTION: Duration = Duration::from_mins(1);
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// A complete response.
pub type Answer = Response<Full<Bytes>>;

/// A running endpoint. Ends on drop.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// The paths that every program's endpoint serves: `/livez`, `/healthz`, `/readyz` with `?verbose`,
/// and `/metrics`.
#[derive(Debug)]
pub struct Probes {
    pub readiness: Readiness,
    /// The possible reasons of [`Readiness`], in the order of the response.
    pub conditions: &'static [&'static str],
    pub metrics: Metrics,
}

/// The client's address, in the extensions of each request.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub SocketAddr);

/// Binds `listen` and serves `handler` on `runtime`. May be called outside a runtime. Requests
/// contain a [`PeerAddress`].
pub fn serve<H, F>(listen: SocketAddr, runtime: &Handle, handler: H) -> io::Result<Endpoint>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let listener = listen::reuse_port(listen, 1, Sharing::Refused)?.remove(0);
    let address = listener.local_addr()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    Ok(Endpoint { address, task: runtime.spawn(accept_all(listener, Arc::new(handler))) })
}

/// A response with the plain text `text`.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, HeaderValue::from_static("text/plain; charset=utf-8"), text)
}

/// A response with `body` of `content_type`, which a browser must not sniff.
pub fn answer(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// 405, with the `allowed` methods.
pub fn method_not_allowed(allowed: &'static str) -> Answer {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, format!("only {allowed} is allowed here\n"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

async fn accept_all<H, F>(listener: TcpListener, handler: Arc<H>)
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let pending = Pending::new(MOST_CONNECTIONS, MOST_OF_ADDRESS);
    // The connections end with the endpoint.
    let mut connections = tokio::task::JoinSet::new();
    let take = |(stream, asker): (TcpStream, SocketAddr)| {
        let (handler, permit) = (Arc::clone(&handler), pending.enter(asker.ip()));
        while connections.try_join_next().is_some() {}
        connections.spawn(served(stream, PeerAddress(asker), handler, permit));
    };
    accept::each("askers of the admin endpoint", || accept::tcp(&listener), take).await;
}

async fn served<H, F>(stream: TcpStream, asker: PeerAddress, handler: Arc<H>, permit: PendingPermit)
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    tokio::select! {
        // Ignores the error: a probe's peer may disconnect at any moment.
        _ = timeout(LONGEST_CONNECTION, connection(stream, asker, handler)) => {}
        () = permit.given_away() => {}
    }
}

async fn connection<H, F>(stream: TcpStream, asker: PeerAddress, handler: Arc<H>) -> hyper::Result<()>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(asker);
        let answered = handler(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

// === impl Endpoint ===

impl Endpoint {
    /// The address it listens on. The port is the real one even for a requested port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Probes ===

impl Probes {
    /// The response to a request for one of the common paths. `None` for any other path. `details`
    /// are lines about the state, which `/readyz?verbose` shows, and every response while the
    /// program is not ready.
    pub fn answer<B>(&self, request: &Request<B>, details: impl FnOnce() -> String) -> Option<Answer> {
        let path = request.uri().path();
        if !matches!(path, "/livez" | "/healthz" | "/readyz" | "/metrics") {
            return None;
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Some(method_not_allowed("GET, HEAD"));
        }
        Some(match path {
            "/metrics" => answer(StatusCode::OK, HeaderValue::from_static(CONTENT_TYPE), self.metrics.encode()),
            "/readyz" => self.ready(is_verbose(request.uri().query()), details),
            _ => text(StatusCode::OK, "ok"),
        })
    }

    /// In the form of Kubernetes' own health checks (`k8s.io/apiserver/pkg/server/healthz`).
    fn ready(&self, verbose: bool, details: impl FnOnce() -> String) -> Answer {
        let blocked = self.readiness.blocked_by();
        if blocked.is_empty() && !verbose {
            return text(StatusCode::OK, "ok");
        }
        let mut lines = String::from("[+]ping ok\n");
        for condition in self.conditions {
            let failed = blocked.contains(condition);
            lines.extend(if failed { ["[-]", condition, " failed\n"] } else { ["[+]", condition, " ok\n"] });
        }
        lines.push_str(&details());
        if blocked.is_empty() {
            lines.push_str("readyz check passed\n");
            text(StatusCode::OK, lines)
        } else {
            lines.push_str("readyz check failed\n");
            text(StatusCode::SERVICE_UNAVAILABLE, lines)
        }
    }
}

fn is_verbose(query: Option<&str>) -> bool {
    query.unwrap_or_default().split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="))
}

#[cfg(test)]
mod tests;
