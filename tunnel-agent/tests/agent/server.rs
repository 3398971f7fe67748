//! A fake tunnel-server as agents see it: TLS, the registration, and then a link on which the test
//! opens streams.
//!
//! It may stand for several servers behind one address: it welcomes by each of its names in turn.
//! The protocol's own code answers requests that are no registration, so that it also passes for an
//! API server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use kit::pki::{ALPN_H1, Authority, ClientAuth, Leaf, server_config};
use kit::wait::Signal;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tunnel::register::applicant;
use tunnel::{Hop, Link, Settings};

/// One registration.
#[derive(Debug, Clone)]
pub struct Seen {
    pub cluster: String,
    pub agent: String,
    pub link: u16,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// Whether a client certificate was presented.
    pub certificate: bool,
    /// The name in its welcome; none if it was refused.
    pub server: Option<String>,
}

/// A running server. Ends with all its links when dropped.
pub struct FakeServer {
    pub address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    names: Mutex<Vec<String>>,
    refusal: Mutex<Option<(StatusCode, Option<Duration>)>>,
    seen: Mutex<Vec<Seen>>,
    links: Mutex<Vec<(Seen, Link)>>,
    changed: Signal,
}

// === impl FakeServer ===

impl FakeServer {
    /// A server that welcomes by `names` in turn.
    pub async fn start(authority: &Authority, names: &[&str]) -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into(), authority, names).await
    }

    /// As [`FakeServer::start`], at `address`, where another server may have been a moment ago.
    pub async fn at(address: SocketAddr, authority: &Authority, names: &[&str]) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let identity = authority.issue(&Leaf::server("tunnel").san("tunnel.example"));
        let tls = TlsAcceptor::from(server_config(&identity, ClientAuth::Optional(authority), ALPN_H1));
        let state = Arc::new(State::default());
        *state.names.lock() = names.iter().map(ToString::to_string).collect();
        let task = tokio::spawn(accept(listener, tls, Arc::clone(&state)));
        Self { address, state, task }
    }

    /// Answers registrations with `refusal` from now on; welcomes them if it is none.
    pub fn refuse(&self, refusal: Option<(StatusCode, Option<Duration>)>) {
        *self.state.refusal.lock() = refusal;
    }

    /// All registrations so far, including refused ones.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().clone()
    }

    /// The links that accept streams now, in order of arrival.
    pub fn links(&self) -> Vec<(Seen, Link)> {
        self.state.links.lock().iter().filter(|(_, link)| link.is_usable()).cloned().collect()
    }

    /// Waits for `count` usable links.
    pub async fn linked(&self, count: usize) -> Vec<(Seen, Link)> {
        self.until(format!("{count} links"), |server| {
            let links = server.links();
            (links.len() == count).then_some(links)
        })
        .await
    }

    /// Waits until `check` finds something; checks again whenever a registration or a link came or
    /// went.
    pub async fn until<T>(&self, what: impl std::fmt::Display, mut check: impl FnMut(&Self) -> Option<T>) -> T {
        self.state.changed.until(what, || check(self)).await
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
        for (_, link) in self.state.links.lock().drain(..) {
            link.close();
        }
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, state: Arc<State>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        tokio::spawn(async move { welcome(socket, tls, &state).await });
    }
}

async fn welcome(socket: TcpStream, tls: TlsAcceptor, state: &Arc<State>) -> Option<()> {
    let stream = tls.accept(socket).await.ok()?;
    let certificate = stream.get_ref().1.peer_certificates().is_some();
    let applicant = applicant(stream, Duration::from_secs(10)).await.ok()?;
    let mut seen = Seen {
        cluster: applicant.registration.cluster.to_string(),
        agent: applicant.registration.agent.clone(),
        link: applicant.registration.link,
        authorization: applicant.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()),
        certificate,
        server: None,
    };
    let refusal = *state.refusal.lock();
    if let Some((status, retry_after)) = refusal {
        state.seen.lock().push(seen);
        state.changed.notify();
        applicant.refuse(status, "no", retry_after).await.ok()?;
        return None;
    }
    let server = {
        let mut names = state.names.lock();
        names.rotate_left(1);
        names.last().unwrap().clone()
    };
    seen.server = Some(server.clone());
    state.seen.lock().push(seen.clone());
    let io = applicant.welcome(&server).await.ok()?;
    let link = Link::start(io, &Settings::default(), Hop::Agent).await.ok()?;
    state.links.lock().push((seen, link.clone()));
    state.changed.notify();
    link.leaving().await;
    state.changed.notify();
    link.ended().await;
    state.changed.notify();
    Some(())
}
