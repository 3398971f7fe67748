//! Clients for many streams at a time, over few connections: HTTP/2, as many connections as their
//! streams need. HTTP/1.1 takes a TLS connection of its own for each watch.

mod connect;
mod http1;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::Body;
use net::permit::Permit;
use parking_lot::Mutex;
use tower::{BoxError, Service};

use self::connect::{Connect, NoHttp2, connectors};
use self::http1::{Http1, repeatable};
use super::bounded;
use super::client::{HubClientError, READ_TIMEOUT, Server, config, config_of_server};
use super::through::assembled;

/// Streams on one connection. What is beyond the server's own limit waits until a stream ends,
/// which behind watches is for ever; 100 is the least that servers should allow (RFC 9113 §6.5.2),
/// and the default of kube-apiserver and of the gateway's peers.
const STREAMS: usize = 100;
/// Connections; more streams than these take are refused.
const CONNECTIONS: usize = 1_000;
/// Bytes that a stream whose reader pauses holds back.
const STREAM_WINDOW: u32 = 64 << 10;
/// Of a connection: all its streams may pause, and none stops another.
const CONNECTION_WINDOW: u32 = 100 * STREAM_WINDOW;
const _: () = assert!(CONNECTION_WINDOW as usize == STREAMS * STREAM_WINDOW as usize, "room for all streams");
/// A connection with streams on which nothing comes for so long is asked for a sign of life.
const PING_AFTER: Duration = Duration::from_secs(30);
/// It is gone when it gives none for so long.
const PING_WITHIN: Duration = Duration::from_secs(10);

const FULL: &str = "too many requests at a time (limit 100000)";

/// Connections to one server. Clones share.
#[derive(Clone)]
struct Pool {
    lanes: Arc<Mutex<Vec<Lane>>>,
    multiplexed: Connect,
    http1: Http1,
}

/// A client with one connection, which it opens again when it is lost.
struct Lane {
    client: legacy::Client<Connect, Body>,
    streams: Arc<AtomicUsize>,
}

/// An answer, which counts as a stream until it is dropped.
struct Streamed {
    body: Incoming,
    _stream: Permit<AtomicUsize>,
}

/// As [`client`](super::client::client), of `server` (none: of the hub), for many streams at a
/// time: up to 100 on each of 1,000 connections, and more are refused. A stream that is not read
/// has 64 KiB of room. A server that does not speak HTTP/2 gets HTTP/1.1, up to 8,192 requests at a
/// time, and is tried again after 10 minutes; a first request that is no GET fails.
///
/// # Errors
///
/// The kubeconfig, the server's URL or one of the files cannot be used.
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
        // Kube's own client knows the proxies that it was built with, or says that it was not.
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

    /// A client with room for one stream more: the first that has, so that the last ones fall idle
    /// and are closed.
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
            // Requests that come together wait for one connection.
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
        if self.http1.is_for(again.is_some()) {
            return self.send_http1(request).await;
        }
        let (client, stream) = self.lane().ok_or(FULL)?;
        match client.request(request).await {
            Ok(response) => {
                self.http1.ends();
                Ok(response.map(|body| Streamed { body, _stream: stream }))
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

    /// By HTTP/1.1.
    async fn send_http1(&self, request: Request<Body>) -> Result<Response<Streamed>, BoxError> {
        let (response, stream) = self.http1.send(request).await?;
        Ok(response.map(|body| Streamed { body, _stream: stream }))
    }
}

impl Service<Request<Body>> for Pool {
    type Response = Response<Streamed>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Streamed>, BoxError>>;

    /// Always: what is beyond all connections is refused when a request is there.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request).boxed()
    }
}

// === impl Streamed ===

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
