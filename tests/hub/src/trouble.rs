//! A hub in trouble: in front of the real one, and at first it answers each call with a fault. It
//! sends no lists as events of a watch, as those before Kubernetes 1.32, but in pages.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kit::pki::{ALPN_H1, Authority, ClientAuth, Issued, Leaf, server_config};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::control_plane::Launcher;
use crate::http::Client;
use crate::kubeconfig::{Credential, Kubeconfig};

/// What an API server may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This code; 429 says when to come again.
    Status(u16),
    /// The connection breaks.
    Reset,
}

const BUSY: u16 = 429;
/// The answer to parameters that are not known.
const UNKNOWN: u16 = 422;

/// All that a client has to outlive.
pub const FAULTS: [Fault; 5] =
    [Fault::Status(BUSY), Fault::Status(409), Fault::Status(410), Fault::Status(500), Fault::Reset];

/// The hub as a client with [`Trouble::kubeconfig`] sees it.
pub struct Trouble {
    address: SocketAddr,
    authority: Authority,
    shared: Arc<Shared>,
    /// Serves until it is dropped.
    runtime: Option<Runtime>,
}

struct Shared {
    hub: Client,
    state: Mutex<State>,
    /// Ends the watches that are open.
    cut: watch::Sender<Option<Fault>>,
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    /// Calls that fail.
    chosen: Vec<String>,
    /// Those that have failed already.
    failed: BTreeSet<String>,
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What is asked: `list`, `watch`, `get`, `write` or `remove`, and the resource with its
/// subresource. None if it is no resource.
fn call(method: &Method, uri: &Uri) -> Option<String> {
    let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = &path[..] else { return None };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let [resource, named @ ..] = rest else { return None };
    let resource = named.get(1).map_or((*resource).to_owned(), |subresource| format!("{resource}/{subresource}"));
    let is_watch = uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("watch=")));
    let verb = match *method {
        Method::GET if is_watch => "watch",
        Method::GET if named.is_empty() => "list",
        Method::GET => "get",
        Method::DELETE => "remove",
        _ => "write",
    };
    Some(format!("{verb} {resource}"))
}

/// Whether a list is asked for as events.
fn asks_for_events(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "sendInitialEvents=true"))
}

/// The error object, as bodies and watches have it.
fn status(code: u16) -> Bytes {
    let reason = match code {
        UNKNOWN => "Invalid",
        BUSY => "TooManyRequests",
        409 => "Conflict",
        410 => "Expired",
        _ => "InternalError",
    };
    let after = (code == BUSY).then_some(1);
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("the hub is in trouble: {code}"), "details": {"retryAfterSeconds": after}});
    Bytes::from(status.to_string())
}

// === impl Fault ===

impl Fault {
    fn code(self) -> io::Result<u16> {
        match self {
            Self::Status(code) => Ok(code),
            Self::Reset => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    fn answer(self) -> io::Result<Response<Body>> {
        let code = self.code()?;
        let body = Full::new(status(code)).map_err(|never| match never {}).boxed_unsync();
        let mut answer = Response::builder().status(code).header("content-type", "application/json");
        if code == BUSY {
            answer = answer.header("retry-after", "1");
        }
        answer.body(body).map_err(io::Error::other)
    }

    /// The last of a watch.
    fn end(self) -> io::Result<Frame<Bytes>> {
        let status = status(self.code()?);
        let event = [&b"{\"type\":\"ERROR\",\"object\":"[..], &status[..], &b"}\n"[..]].concat();
        Ok(Frame::data(event.into()))
    }
}

// === impl Trouble ===

impl Trouble {
    /// In front of what `hub` calls.
    pub fn start(hub: Client) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let authority = Authority::new("trouble");
        let identity: Issued = authority.issue(&Leaf::server("hub"));
        let acceptor = TlsAcceptor::from(server_config(&identity, ClientAuth::None, ALPN_H1));
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).context("no port")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { hub, state: Mutex::default(), cut: watch::Sender::new(None) });
        let served = Arc::clone(&shared);
        runtime.spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(tcp, acceptor.clone(), Arc::clone(&served)));
            }
        });
        Ok(Self { address, authority, shared, runtime: Some(runtime) })
    }

    /// Of a client by `token`, or without a credential.
    pub fn kubeconfig(&self, launcher: &Launcher, name: &str, token: Option<String>) -> Result<PathBuf> {
        let authority = launcher.file(&format!("{name}-trouble.crt"));
        std::fs::write(&authority, self.authority.root_pem())?;
        let credential = token.map_or(Credential::None, Credential::Token);
        let kubeconfig = Kubeconfig { server: format!("https://{}", self.address), authority, credential };
        kubeconfig.write(launcher.file(&format!("{name}-trouble.kubeconfig")))
    }

    /// From now on, each call that begins as one of `chosen` fails once. Watches end.
    pub fn begin(&self, fault: Fault, chosen: &[&str]) {
        let chosen = chosen.iter().map(|call| (*call).to_owned()).collect();
        *self.shared.state.lock() = State { fault: Some(fault), chosen, failed: BTreeSet::new() };
        self.shared.cut.send_replace(Some(fault));
    }

    /// Whether each of `calls` has failed since then.
    pub fn ensure_failed(&self, calls: &[&str]) -> Result<()> {
        let state = self.shared.state.lock();
        let missing: Vec<_> = calls.iter().filter(|call| !state.failed.contains(**call)).collect();
        ensure!(missing.is_empty(), "{:?}: nobody has asked for {missing:?}, but: {:?}", state.fault, state.failed);
        Ok(())
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(tcp: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(tls) = acceptor.accept(tcp).await else { return };
    let answer = service_fn(move |request| Arc::clone(&shared).answer(request));
    // How a connection ends is the client's affair.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), answer).await;
}

// === impl Shared ===

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Response<Body>> {
        if asks_for_events(request.uri()) {
            return Fault::Status(UNKNOWN).answer();
        }
        let call = call(request.method(), request.uri());
        if let Some(fault) = call.as_deref().and_then(|call| self.fault(call)) {
            return fault.answer();
        }
        let cut = call.filter(|call| call.starts_with("watch ")).map(|_| self.cut.subscribe());
        let response = self.pass(request).await.map_err(io::Error::other)?;
        Ok(response.map(|body| match cut {
            Some(cut) => until_cut(body, cut),
            None => body.map_err(io::Error::other).boxed_unsync(),
        }))
    }

    fn fault(&self, call: &str) -> Option<Fault> {
        let mut state = self.state.lock();
        let is_chosen = state.chosen.iter().any(|chosen| call.starts_with(chosen.as_str()));
        let fails = is_chosen && state.failed.insert(call.to_owned());
        state.fault.filter(|_| fails)
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Incoming>> {
        Ok(self.hub.dialer.http1().await?.send_request(request).await?)
    }
}

/// The watch, until the next trouble begins.
fn until_cut(body: Incoming, cut: watch::Receiver<Option<Fault>>) -> Body {
    let events = stream::unfold(Some((body, cut)), async |open| {
        let (mut body, mut cut) = open?;
        tokio::select! {
            frame = body.frame() => match frame? {
                Ok(frame) => Some((Ok(frame), Some((body, cut)))),
                Err(error) => Some((Err(io::Error::other(error)), None)),
            },
            Ok(()) = cut.changed() => {
                let fault = *cut.borrow();
                Some((fault.unwrap_or(Fault::Reset).end(), None))
            }
        }
    });
    StreamBody::new(events).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_verb_and_resource() {
        for (method, uri, expected) in [
            (Method::GET, "/api/v1/namespaces/n/secrets?limit=500", Some("list secrets")),
            (Method::GET, "/api/v1/namespaces/n/secrets?watch=true&a=b", Some("watch secrets")),
            (Method::GET, "/api/v1/namespaces/n", Some("get namespaces")),
            (Method::PATCH, "/apis/g/v1/things/t/status", Some("write things/status")),
            (Method::DELETE, "/apis/g/v1/namespaces/n/things/t", Some("remove things")),
            (Method::GET, "/apis/g/v1", None),
            (Method::GET, "/version", None),
        ] {
            let found = call(&method, &uri.parse().unwrap());
            assert_eq!(found.as_deref(), expected, "{uri}");
        }
    }
}
