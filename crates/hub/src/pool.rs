//! Clients for many concurrent streams over few connections. HTTP/2 opens as many connections as
//! its streams need. HTTP/1.1 would take one TLS connection per watch.

mod connect;
mod http1;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::Body;
use net::permit::{Carried, Permit};
use parking_lot::Mutex;
use tower::{BoxError, Service};

use self::connect::{Connect, NoHttp2, connectors};
use self::http1::{Http1, repeatable};
use super::bounded;
use super::client::{HubClientError, READ_TIMEOUT, Server, config, config_of_server};
use super::through::assembled;

/// Most streams on one connection. A stream above the server's own limit waits until another ends,
/// which is forever behind watches. 100 is the lowest limit that servers should set (RFC 9113
/// §6.5.2), and the default of kube-apiserver and of the gateway's peers.
const STREAMS: usize = 100;
/// Most connections. Streams beyond their capacity are refused.
const CONNECTIONS: usize = 1_000;
/// Bytes buffered for a stream whose reader pauses.
const STREAM_WINDOW: u32 = 64 << 10;
/// The window of a connection: all its streams may pause without stopping another.
const CONNECTION_WINDOW: u32 = 100 * STREAM_WINDOW;
const _: () = assert!(CONNECTION_WINDOW as usize == STREAMS * STREAM_WINDOW as usize, "room for all streams");
/// A connection with open streams is pinged after this much silence.
const PING_AFTER: Duration = Duration::from_secs(30);
/// A connection is dead when it answers no ping within this.
const PING_WITHIN: Duration = Duration::from_secs(10);

const FULL: &str = "too many requests at a time (limit 100000)";

/// Connections to one server. Clones share them.
#[derive(Clone)]
struct Pool {
    lanes: Arc<Mutex<Vec<Lane>>>,
    multiplexed: Connect,
    http1: Http1,
}

/// A client with one connection, which it reopens when the connection is lost.
struct Lane {
    client: legacy::Client<Connect, Body>,
    streams: Arc<AtomicUsize>,
}

/// The body of a response, counted as a stream until it is dropped.
type Streamed = Carried<Incoming, Permit<AtomicUsize>>;

/// Like [`client`](super::client::client), for many concurrent streams: up to 100 on each of 1,000
/// connections. Further streams are refused. `server: None` is the hub. A stream that is not read
/// buffers 64 KiB. A server that does not speak HTTP/2 gets HTTP/1.1, with up to 8,192 concurrent
/// requests, and HTTP/2 is tried again after 10 minutes. The first request to such a server fails
/// if it is not a GET.
///
/// # Errors
///
/// Fails if the kubeconfig, the server's URL or one of the files cannot be used.
pub async fn pooled_client(
    kubeconfig: Option<&Path>,
    server: Option<Server<'_>>,
    user_agent: &str,
) -> Result<Client, HubClientError> {
    let mut config = match server {
        Some(server) => config_of_server(kubeconfig, server, user_agent).await?,
        None => config(kubeconfig, user_agent).await?,
    };
    if config.proxy_url.is_some() {
        // Only kube's own client implements proxies. It reports the kinds that it was built
        // without.
        config.read_timeout = Some(READ_TIMEOUT);
        return bounded::client(config).map_err(HubClientError::Client);
    }
    let pool = Pool::new(&config)?;
    assembled(&config, pool)
}

// === impl Pool ===

impl Pool {
    fn new(config: &kube::Config) -> Result<Self, HubClientError> {
        let (multiplexed, http1) = connectors(config)?;
        Ok(Self { lanes: Arc::default(), multiplexed, http1: Http1::new(http1) })
    }

    /// A client with room for one more stream. Takes the first such connection, so that the last
    /// connections become idle and close.
    fn lane(&self) -> Option<(legacy::Client<Connect, Body>, Permit<AtomicUsize>)> {
        let mut lanes = self.lanes.lock();
        let room = |lane: &Lane| Some((lane.client.clone(), Permit::of(&lane.streams, STREAMS)?));
        lanes.iter().find_map(room).or_else(|| {
            (lanes.len() < CONNECTIONS).then(|| lanes.push(self.opened()))?;
            room(lanes.last()?)
        })
    }

    fn opened(&self) -> Lane {
        let client = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            // Concurrent first requests wait for one connection.
            .http2_only(true)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING_AFTER)
            .http2_keep_alive_timeout(PING_WITHIN)
            .build(self.multiplexed.clone());
        Lane { client, streams: Arc::default() }
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Streamed>, BoxError> {
        let again = repeatable(&request);
        if self.http1.takes(again.is_some()) {
            return self.send_http1(request).await;
        }
        let (client, stream) = self.lane().ok_or(FULL)?;
        match client.request(request).await {
            Ok(response) => {
                self.http1.ends();
                Ok(response.map(|body| Streamed::new(body, stream)))
            }
            Err(error) if NoHttp2::is_why(&error) => {
                if self.http1.begins() {
                    tracing::warn!("the server does not speak HTTP/2: each watch takes a connection of its own");
                }
                self.send_http1(again.ok_or(error)?).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn send_http1(&self, request: Request<Body>) -> Result<Response<Streamed>, BoxError> {
        let (response, stream) = self.http1.send(request).await?;
        Ok(response.map(|body| Streamed::new(body, stream)))
    }
}

impl Service<Request<Body>> for Pool {
    type Response = Response<Streamed>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Streamed>, BoxError>>;

    /// Always ready: a request beyond the capacity of all connections fails in `call`.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request).boxed()
    }
}

#[cfg(test)]
mod tests;
