//! A tunnel-server without agents: it serves the frontends' side of the protocol and dials by
//! itself, or answers as a test says.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::pki::{ALPN_H2, ClientAuth, Leaf, server_config};
use kit::wait::Gate;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tunnel::bridge::bridge;
use tunnel::{Gauge, Hop, Incoming, Reason, Refusal, Serving, Settings, Timing, serve};

use super::Pki;

/// The fate of a cluster's streams.
#[derive(Clone)]
pub enum Answer {
    LeadsTo(SocketAddr),
    /// The same, with these reported times.
    Timed(Timing, SocketAddr),
    Refused(Refusal),
    /// Nothing is answered until the gate opens.
    Waits(Gate, SocketAddr),
}

/// A running tunnel-server. It stops when dropped, and its links with it.
pub struct TunnelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _listening: Aborted,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, Answer>>,
    /// Destination and cluster of every stream asked for.
    asked: Mutex<Vec<(String, String)>>,
    /// Streams that were given up before they were answered.
    cancelled: AtomicUsize,
    /// Common names of the gateways' certificates, one for each link.
    links: Mutex<Vec<String>>,
    open: Mutex<Vec<(Serving, JoinHandle<()>)>>,
    ended: AtomicUsize,
    changed: watch::Sender<()>,
}

struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub fn refusal(hop: Hop, reason: Reason, message: &str) -> Answer {
    Answer::Refused(Refusal::new(hop, reason, message))
}

// === impl TunnelServer ===

impl TunnelServer {
    pub async fn start(pki: &Pki) -> Self {
        Self::start_at(pki, (Ipv4Addr::LOCALHOST, 0).into()).await
    }

    pub async fn start_at(pki: &Pki, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let identity = pki.servers.issue(&Leaf::server("tunnel-server"));
        let tls = server_config(&identity, ClientAuth::Required(&pki.frontends), ALPN_H2);
        let shared = Arc::<Shared>::default();
        let listening = Aborted(tokio::spawn(accept(listener, tls.into(), Arc::clone(&shared))));
        Self { address, shared, _listening: listening }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Decides about `cluster` from now on; others are unknown.
    pub fn set(&self, cluster: &str, answer: Answer) {
        self.shared.answers.lock().insert(cluster.to_owned(), answer);
    }

    /// Destination and cluster of every stream asked for.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.shared.asked.lock().clone()
    }

    /// Streams asked for.
    pub fn count(&self) -> usize {
        self.shared.asked.lock().len()
    }

    /// Dials that their gateway gave up.
    pub fn cancelled(&self) -> usize {
        self.shared.cancelled.load(Ordering::SeqCst)
    }

    /// Common names of the certificates shown, one for each link so far.
    pub fn links(&self) -> Vec<String> {
        self.shared.links.lock().clone()
    }

    /// Links that have ended.
    pub fn ended(&self) -> usize {
        self.shared.ended.load(Ordering::SeqCst)
    }

    /// GOAWAY on all links.
    pub fn drain(&self) {
        self.shared.open.lock().iter().for_each(|(serving, _)| serving.drain());
    }

    /// Ends all links, even in mid-stream.
    pub fn cut(&self) {
        self.shared.open.lock().drain(..).for_each(|(serving, _)| serving.close());
    }
}

impl Drop for TunnelServer {
    fn drop(&mut self) {
        self.shared.open.lock().drain(..).for_each(|(_, task)| task.abort());
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((tcp, _)) = listener.accept().await {
        let serving = Serving::default();
        let task = tokio::spawn(link(tcp, tls.clone(), serving.clone(), Arc::clone(&shared)));
        shared.open.lock().push((serving, task));
    }
}

async fn link(tcp: TcpStream, tls: TlsAcceptor, serving: Serving, shared: Arc<Shared>) {
    let Ok(stream) = tls.accept(tcp).await else { return };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).expect("one is required");
    shared.links.lock().push(common_name(certificate));
    shared.changed.send_replace(());
    let asked = Arc::clone(&shared);
    let _ = serve(stream, &Settings::default(), serving, move |incoming| answer(incoming, Arc::clone(&asked))).await;
    shared.ended.fetch_add(1, Ordering::SeqCst);
}

async fn answer(mut incoming: Incoming, shared: Arc<Shared>) {
    let cluster = incoming.cluster.as_ref().map(ToString::to_string).unwrap_or_default();
    shared.asked.lock().push((incoming.destination.to_string(), cluster.clone()));
    let answer = shared.answers.lock().get(&cluster).cloned();
    let unknown = || Refusal::new(Hop::Server, Reason::UnknownCluster, format!("no cluster {cluster} here"));
    let (timing, address) = match answer {
        None => return incoming.refuse(&unknown()),
        Some(Answer::Refused(refusal)) => return incoming.refuse(&refusal),
        Some(Answer::LeadsTo(address)) => (Timing::default(), address),
        Some(Answer::Timed(timing, address)) => (timing, address),
        Some(Answer::Waits(gate, address)) => {
            tokio::select! {
                () = gate.passed() => (Timing::default(), address),
                () = incoming.cancelled() => {
                    shared.cancelled.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    };
    let Ok(tcp) = TcpStream::connect(address).await else {
        return incoming.refuse(&Refusal::new(
            Hop::Agent,
            Reason::Unreachable,
            format!("{address}: connection refused"),
        ));
    };
    if let Ok(stream) = incoming.accept_timed(timing) {
        let _ = bridge(stream, tcp, Arc::new(Gauge::default()), true).await;
    }
}

/// The text of the last attribute of the subject, which is the common name in certificates of the
/// kit without groups.
fn common_name(certificate: &[u8]) -> String {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).expect("a certificate");
    let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok()).unwrap_or_default();
    name.to_owned()
}
