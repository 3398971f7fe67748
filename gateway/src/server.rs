//! The serving side of one core: accept, TLS, HTTP/2 or HTTP/1.1, then the handler.

mod heard;
mod http1;
mod http2;
mod lengths;
mod limits;

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use auth::Peer;
use net::large_reads::LargeReads;
use net::tls;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use self::limits::Limits;
use crate::connection::Connection;
use crate::needs::RequestNeeds;

type Stream = TlsStream<LargeReads<TcpStream>>;

/// Accepts connections on one core until the gateway drains.
pub struct Server {
    gateway: Arc<RequestNeeds>,
    tls: TlsAcceptor,
    core: usize,
    room: Arc<Semaphore>,
}

/// How a connection ended, if not in good order.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error("its late pseudo-headers kept more than {} MiB of header blocks in memory", Limits::PINNED / (1024 * 1024))]
    PinnedHeads,
    #[error("no HTTP/2 preface within {0:?}")]
    NoPreface(Duration),
    #[error("no answer to a PING within {0:?}")]
    Silent(Duration),
}

// === impl Server ===

impl Server {
    pub fn new(gateway: Arc<RequestNeeds>, tls: Arc<ServerConfig>, core: usize) -> Self {
        Self { gateway, tls: tls.into(), core, room: Arc::new(Semaphore::new(Limits::CONNECTIONS)) }
    }

    pub async fn run(self, listener: TcpListener) {
        let drain = self.gateway.drain.clone();
        let mut drained = pin!(drain.soft());
        let server = Arc::new(self);
        loop {
            // At the limit, new connections wait in the kernel's queue.
            let accepted = async {
                let permit = Arc::clone(&server.room).acquire_owned().await.expect("never closed");
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                biased;
                () = &mut drained => return,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, address)) => server.spawn(stream, address, permit),
                Err(error) => pause_after(&error).await,
            }
        }
    }

    fn spawn(self: &Arc<Self>, stream: TcpStream, address: SocketAddr, permit: OwnedSemaphorePermit) {
        let server = Arc::clone(self);
        let guard = server.gateway.drain.guard();
        tokio::spawn(async move {
            let open = server.gateway.metrics.client_connection();
            server.connection(stream, address).await;
            drop((guard, permit, open));
        });
    }

    async fn connection(&self, stream: TcpStream, address: SocketAddr) {
        net::dial::tune(&stream);
        let handshake = timeout(Limits::TLS_HANDSHAKE, self.tls.accept(LargeReads::new(stream)));
        let stream = match handshake.await {
            Ok(Ok(stream)) => stream,
            failed => {
                self.gateway.metrics.tls_failed();
                let reason = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("not finished within {:?}", Limits::TLS_HANDSHAKE),
                };
                return tracing::debug!(%address, reason, "TLS handshake failed");
            }
        };
        let session = stream.get_ref().1;
        let certificates =
            session.peer_certificates().unwrap_or_default().iter().map(|der| der.clone().into_owned()).collect();
        let http2 = session.alpn_protocol() == Some(tls::H2);
        let peer = Peer::new(address, certificates);
        let connection = Arc::new(Connection::new(Arc::clone(&self.gateway), peer, self.core));
        let end = if http2 { http2::serve(stream, connection).await } else { http1::serve(stream, connection).await };
        if let Err(error) = end {
            tracing::debug!(%address, %error, "client connection ended");
        }
    }
}

/// Errors of `accept` are of one connection, or mean that the process is out of something: files, most often.
async fn pause_after(error: &io::Error) {
    const PAUSE: Duration = Duration::from_millis(200);
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept connections, trying again");
    tokio::time::sleep(PAUSE).await;
}

/// Serves until the client is done; asked to leave, finishes what is in flight; told to, drops it.
async fn drive<C, E>(serving: C, leave: impl Fn(Pin<&mut C>), connection: &Connection) -> Result<(), E>
where
    C: Future<Output = Result<(), E>>,
{
    let drain = &connection.gateway().drain;
    let mut serving = pin!(serving);
    tokio::select! {
        biased;
        end = serving.as_mut() => return end,
        () = drain.soft() => {}
        () = connection.should_close() => {}
    }
    leave(serving.as_mut());
    tokio::select! {
        biased;
        () = drain.hard() => Ok(()),
        end = serving => end,
    }
}
