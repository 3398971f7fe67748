//! A scripted member API server that records every request.
//!
//! Replies are scripted by path. Every request is recorded as it came, from its head to its end:
//! the read part of the body, and whether the answer was taken whole or the caller went away first.

mod black_hole;
mod body;
pub mod raw;
mod record;
mod reply;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::Mutex;
use rustls::ServerConfig;
use serde_json::json;
use tokio::sync::mpsc;

pub use self::black_hole::BlackHole;
pub use self::body::Piece;
pub use self::record::{BodyEnd, Ending, Recorded};
pub(crate) use self::reply::header_map;
pub use self::reply::{Reply, StreamSender, Streams};
pub use crate::server::Peer;

use self::body::RecordedBody;
use self::record::{Exchange, Log, REMEMBERED};
use crate::pki::{ALPN_BOTH, Authority, ClientAuth, Leaf, server_config};
use crate::server::{Body, Connection, Server};

/// Streams one path may have open before the first call of [`Streams::next`]; further requests get
/// 503.
const WAITING_STREAMS: usize = 1024;

type Script = Arc<dyn Fn(&Recorded) -> Reply + Send + Sync>;

/// Options of a fake member's listener. Start from `MemberOptions::default()`.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// Protocols offered, best first; none when empty (then HTTP/1.1 is spoken).
    pub alpn: &'static [&'static str],
    /// HTTP/2 streams one connection may have open; kube-apiserver's default.
    pub max_concurrent_streams: u32,
    /// The authority that issues the serving certificate; the member makes its own when absent.
    pub authority: Option<Arc<Authority>>,
    /// The serving certificate.
    pub serving: Leaf,
    /// Request client certificates below this authority.
    pub client_authority: Option<Arc<Authority>>,
    /// Fail the handshake without one.
    pub require_client_certificate: bool,
    /// Replaces everything above about TLS, `alpn` included.
    pub tls: Option<Arc<ServerConfig>>,
    /// The listener's address; a fixed port lets a member come back where it was.
    pub address: SocketAddr,
    /// Requests remembered; the oldest are forgotten first, the count goes on.
    pub remembered: usize,
}

/// A running fake member. It stops when dropped.
#[derive(Debug)]
pub struct FakeMember {
    server: Server,
    state: Arc<State>,
    authority: Arc<Authority>,
}

struct State {
    log: Arc<Log>,
    scripts: Mutex<HashMap<String, Script>>,
    otherwise: Mutex<Option<Script>>,
}

// === impl MemberOptions ===

impl Default for MemberOptions {
    fn default() -> Self {
        Self {
            alpn: ALPN_BOTH,
            max_concurrent_streams: 100,
            authority: None,
            serving: Leaf::server("kube-apiserver").san("kubernetes.default.svc"),
            client_authority: None,
            require_client_certificate: false,
            tls: None,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            remembered: REMEMBERED,
        }
    }
}

impl MemberOptions {
    fn server_config(&self, authority: &Authority) -> Arc<ServerConfig> {
        let client_auth = match (&self.client_authority, self.require_client_certificate) {
            (Some(clients), true) => ClientAuth::Required(clients),
            (Some(clients), false) => ClientAuth::Optional(clients),
            (None, _) => ClientAuth::None,
        };
        self.tls.clone().unwrap_or_else(|| server_config(&authority.issue(&self.serving), client_auth, self.alpn))
    }
}

// === impl FakeMember ===

impl FakeMember {
    /// Starts a member that answers 404 to everything, until it is scripted.
    pub async fn start(options: MemberOptions) -> Self {
        let authority = options.authority.clone().unwrap_or_else(|| Arc::new(Authority::new("member-ca")));
        let log = Arc::new(Log::of(options.remembered));
        let state = Arc::new(State { log, scripts: Mutex::default(), otherwise: Mutex::default() });
        let handler = {
            let state = state.clone();
            Arc::new(move |request, connection| {
                let answer = state.clone().answer(request, connection);
                Box::pin(async move { Ok(answer.await) }) as _
            })
        };
        let tls = options.server_config(&authority);
        let server = Server::start(options.address, tls, options.max_concurrent_streams, handler)
            .await
            .expect("a member can listen on loopback");
        Self { server, state, authority }
    }

    /// Writes a kubeconfig for it, with the token `secret`, into `directory`.
    ///
    /// # Panics
    ///
    /// If `directory` cannot be written to.
    pub fn write_kubeconfig(&self, directory: &Path) -> PathBuf {
        let (url, ca) = (self.url(), STANDARD.encode(self.ca_pem()));
        let kubeconfig = json!({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": {"token": "secret"}}]});
        let path = directory.join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string()).expect("the directory is writable");
        path
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The authority that issued its serving certificate.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The root certificate to trust, PEM: `caData` of the cluster's Secret.
    pub fn ca_pem(&self) -> String {
        self.authority.root_pem()
    }

    /// Answers requests for `path` (without query, exactly as sent) by `script`. Replaces an
    /// earlier script of the path.
    pub fn on(&self, path: &str, script: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) {
        self.state.scripts.lock().insert(path.to_owned(), Arc::new(script));
    }

    /// Answers requests for every path without a script of its own.
    pub fn on_any(&self, script: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) {
        *self.state.otherwise.lock() = Some(Arc::new(script));
    }

    /// Answers requests for `path` by streams that the test drives, such as watches and logs.
    pub fn streams(&self, path: &str) -> Streams {
        let (opened, receiver) = mpsc::channel(WAITING_STREAMS);
        self.on(path, move |request| {
            let (sender, reply) = Reply::stream(200, &[("content-type", "application/json")]);
            match opened.try_send((request.clone(), sender)) {
                Ok(()) => reply,
                Err(_) => Reply::json(503, &serde_json::json!({"message": "the test takes no more streams here"})),
            }
        });
        Streams::new(path, receiver)
    }

    /// The requests seen so far, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.log.recorded()
    }

    /// Number of received requests: zero is what every refusal must leave here.
    pub fn request_count(&self) -> usize {
        self.state.log.count()
    }

    /// The oldest request that this method has not returned yet; waits for one if need be.
    pub async fn next_request(&self) -> Recorded {
        self.state.log.next_recorded().await
    }

    /// The oldest request that was cancelled by its caller and that this method has not returned
    /// yet; waits for one.
    pub async fn cancelled(&self) -> Recorded {
        self.state.log.next_cancelled().await
    }

    /// TCP connections accepted so far.
    pub fn connections_accepted(&self) -> usize {
        self.server.accepted()
    }

    /// Connections open now.
    pub fn connections_open(&self) -> usize {
        self.server.open()
    }

    /// TLS handshakes that failed.
    pub fn refused_handshakes(&self) -> usize {
        self.server.refused_handshakes()
    }

    /// Asks the callers to leave: GOAWAY on HTTP/2, `Connection: close` on HTTP/1.1. Running
    /// requests finish.
    pub fn goaway(&self) {
        self.server.goaway();
    }

    /// Closes every open connection, even in mid-request.
    pub fn close_connections(&self) {
        self.server.close_connections();
    }
}

// === impl State ===

impl State {
    async fn answer(self: Arc<Self>, mut request: Request<Incoming>, connection: Arc<Connection>) -> Response<Body> {
        let upgrade = hyper::upgrade::on(&mut request);
        let (parts, body) = request.into_parts();
        let recorded = self.log.record(parts, &connection);
        // From here on, dropping this future (the caller went away) records the request as
        // cancelled.
        let exchange = Exchange::new(recorded.clone(), self.log.clone());
        let body = RecordedBody::new(body, recorded.clone());
        self.script(&recorded)(&recorded).answer(exchange, body, upgrade).await
    }

    fn script(&self, request: &Recorded) -> Script {
        let scripted = self.scripts.lock().get(request.path()).cloned();
        scripted.or_else(|| self.otherwise.lock().clone()).unwrap_or_else(|| Arc::new(|_| Reply::not_found()))
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("requests", &self.log.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
