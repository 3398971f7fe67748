//! The frontends' TCP listener. The handshake rejects a client without a certificate of the
//! frontends' CA. Each `CONNECT` checks the certificate again: after a rotation of the CA, open
//! streams continue, but a certificate of the former CA opens no new ones.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use auth::{ClientCa, Peer};
use bytes::BytesMut;
use net::accept;
use net::large_reads::LargeReads;
use net::listen::{self, Sharing};
use net::pending::{Pending, PendingPermit};
use net::tls;
use net::tls::policy::Policy;
use net::tls::server::{ClientAdmission, ServingCertificate, config_admitting};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tunnel::Settings;

use super::{Permits, connection};
use crate::args::FrontendTls;
use crate::relay::Origin;
use crate::shared::Shared;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Wait for another connection to end when all permits are taken.
const ROOM_TIMEOUT: Duration = Duration::from_secs(2);

/// State that every connection needs.
struct Connections {
    shared: Shared,
    acceptor: TlsAcceptor,
    clients: Arc<ClientCa>,
    /// Connections without a certificate yet. They do not count against [`Permits`].
    pending: Pending,
    permits: Permits,
}

/// A bound socket.
pub struct Listener {
    socket: TcpListener,
    certificate: Arc<ServingCertificate>,
    connections: Arc<Connections>,
}

// === impl Listener ===

impl Listener {
    /// Binds, reads the files, and spawns tasks on `workers` that follow the files.
    pub fn bind(
        config: &FrontendTls,
        shared: Shared,
        permits: Permits,
        workers: &mut JoinSet<()>,
    ) -> anyhow::Result<Self> {
        let certificate = ServingCertificate::load(config.serving.clone()).context("serving certificate")?;
        let metrics = shared.metrics.clone();
        let clients =
            ClientCa::open(&config.client_ca_file, &Handle::current(), move || metrics.reload_failed("client-ca"))?;
        let metrics = shared.metrics.clone();
        workers.spawn(Arc::clone(&certificate).follow(|| {}, move || metrics.reload_failed("certificate")));
        let admission: Arc<dyn ClientAdmission> = clients.clone();
        let acceptor = config_admitting(certificate.clone(), &Policy::default(), admission).into();
        let mut sockets = listen::reuse_port(config.listen, 1, Sharing::Refused)?;
        let socket = TcpListener::from_std(sockets.remove(0))?;
        let pending = Pending::new(shared.limits.handshakes, shared.limits.handshakes_per_address);
        let connections = Arc::new(Connections { shared, acceptor, clients, pending, permits });
        Ok(Self { socket, certificate, connections })
    }

    /// The listener's address, with the real port even if the configuration has port 0.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The serving certificate.
    pub fn certificate(&self) -> &Arc<ServingCertificate> {
        &self.certificate
    }

    /// Accepts until the server drains.
    pub async fn run(self) {
        let Self { socket, connections, .. } = self;
        let drain = connections.shared.drain.clone();
        let take = |(stream, address): (TcpStream, SocketAddr)| {
            let (connections, guard) = (Arc::clone(&connections), drain.guard());
            // Before the task runs, so that permits go in the order of arrival.
            let pending_permit = connections.pending.enter(address.ip());
            tokio::spawn(async move {
                connections.connection(stream, address, pending_permit).await;
                drop(guard);
            });
        };
        let accepting = accept::each("frontends", || accept::tcp(&socket), take);
        drain.soft_token().run_until_cancelled(accepting).await;
    }
}

// === impl Connections ===

impl Connections {
    async fn connection(&self, stream: TcpStream, address: SocketAddr, pending_permit: PendingPermit) {
        let admitted = tokio::select! {
            biased;
            admitted = Box::pin(self.admit(stream)) => admitted,
            () = pending_permit.given_away() => Err(("shed", "closed to make room".to_owned())),
        };
        drop(pending_permit);
        match admitted {
            Ok((stream, permit)) => {
                self.serve(stream, address).await;
                drop(permit);
            }
            Err((kind, reason)) => {
                self.shared.metrics.turned_away(kind);
                tracing::debug!(frontend = %address, kind, reason, "a frontend's connection was not admitted");
            }
        }
    }

    /// Returns the connection of a client with a certificate and its permit, or the metric's label
    /// and the reason of the failure.
    async fn admit(
        &self,
        stream: TcpStream,
    ) -> Result<(TlsStream<LargeReads<TcpStream>>, OwnedSemaphorePermit), (&'static str, String)> {
        let late = |_| ("tls", format!("not finished within {HANDSHAKE_TIMEOUT:?}"));
        let accepting =
            self.acceptor.accept_with(LargeReads::new(stream), |tls| tls.set_buffer_limit(Some(Settings::TLS_BUFFER)));
        let stream = timeout(HANDSHAKE_TIMEOUT, accepting).await.map_err(late)?;
        let stream = stream.map_err(|error| ("tls", error.to_string()))?;
        let permit = timeout(ROOM_TIMEOUT, self.permits.enter()).await;
        Ok((stream, permit.map_err(|_| ("limit", "no room for another connection".to_owned()))?))
    }

    async fn serve(&self, stream: TlsStream<LargeReads<TcpStream>>, address: SocketAddr) {
        let session = stream.get_ref().1;
        let certificates =
            session.peer_certificates().unwrap_or_default().iter().map(|der| der.clone().into_owned()).collect();
        let http2 = session.alpn_protocol() == Some(tls::H2);
        let origin = Origin::certified(Peer::new(address, certificates), Arc::clone(&self.clients));
        let shared = self.shared.clone();
        let connected = shared.metrics.connected("tls", if http2 { "h2" } else { "http/1.1" });
        // Boxed, so that neither branch holds memory for the other.
        if http2 {
            Box::pin(connection::http2(shared, origin, stream)).await;
        } else {
            Box::pin(connection::http1(shared, origin, stream, BytesMut::new())).await;
        }
        drop(connected);
    }
}
