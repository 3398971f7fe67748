//! The serving side of one core: accepts connections, terminates TLS, and serves HTTP/2 or HTTP/1.1
//! with the handler.

mod cut;
mod ended;
mod http1;
mod http2;
pub mod lengths;
pub mod limits;

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use api::route::Served;
use auth::Peer;
use net::accept;
use net::large_reads::LargeReads;
use net::pending::{Connections, Pending, PendingPermit};
use net::tls;
use net::words;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use self::cut::Cut;
use self::ended::Ended;
use self::limits::Limits;
use crate::connection::Connection;
use crate::holding::{self, Account, Holding};
use crate::metrics::ConnectionLimit;
use crate::needs::RequestNeeds;

type Stream = TlsStream<LargeReads<TcpStream>>;

/// Accepts connections to one port on one core until the gateway drains.
pub struct Server {
    gateway: Arc<RequestNeeds>,
    tls: TlsAcceptor,
    core: usize,
    /// Shared by the core's ports: another port brings no more room.
    room: Connections,
    served: Served,
}

// === impl Server ===

impl Server {
    /// A server for the port that serves `served`.
    pub fn new(gateway: Arc<RequestNeeds>, tls: Arc<ServerConfig>, core: usize, served: Served) -> Self {
        let room = Connections::new(Limits::CONNECTIONS, Pending::new(Limits::STRANGERS, Limits::STRANGERS_OF_ONE));
        Self { gateway, tls: tls.into(), core, room, served }
    }

    /// The same core's server for another port, with the same certificates and the same room.
    pub fn beside(&self, served: Served) -> Self {
        let (gateway, tls, room) = (Arc::clone(&self.gateway), self.tls.clone(), self.room.clone());
        Self { gateway, tls, core: self.core, room, served }
    }

    pub async fn run(self, listener: TcpListener) {
        let drain = self.gateway.drain.clone();
        let server = Arc::new(self);
        let next = || async {
            let (stream, address) = accept::tcp(&listener).await?;
            // At the limit, the user with the most connections loses some, or the strangers do.
            // Otherwise new connections wait in the kernel's queue.
            Ok((stream, address, server.room.enter_or(address.ip(), |strangers| server.make_room(strangers)).await))
        };
        let take = |(stream, address, (permit, pending_permit))| server.spawn(stream, address, permit, pending_permit);
        drain.soft_token().run_until_cancelled(accept::each("connections", next, take)).await;
    }

    /// Ends connections of the user with the most of them, unless the strangers have more. Never
    /// ends a front proxy's.
    fn make_room(&self, strangers: usize) -> bool {
        // This looks at all connections, so it must not run for each connection of a flood.
        strangers < Limits::FEW_STRANGERS
            && self.gateway.budget.thin_out(self.core, strangers, Holding::known_connection) > 0
    }

    fn spawn(
        self: &Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        permit: OwnedSemaphorePermit,
        pending_permit: PendingPermit,
    ) {
        let server = Arc::clone(self);
        let guard = server.gateway.drain.guard();
        tokio::spawn(async move {
            let open = server.gateway.metrics.client_connection();
            server.connection(stream, address, pending_permit).await;
            drop((guard, permit, open));
        });
    }

    async fn connection(&self, stream: TcpStream, address: SocketAddr, pending_permit: PendingPermit) {
        let held = holding::open(&self.gateway.budget, self.core, address.ip());
        // Each phase is boxed: inline, the task would have space for every phase until the
        // connection ends.
        let Some(stream) = Box::pin(self.handshake(stream, address, &pending_permit, &held)).await else { return };
        if let Err(error) = self.serve(stream, address, pending_permit, held).await {
            self.count_end(error.limit());
            tracing::debug!(%address, error = words::causes(&error), "client connection ended");
        }
    }

    /// Serves the connection after its handshake. Not in [`Self::connection`] itself, whose memory
    /// would have space for a stream that it has passed on.
    fn serve(
        &self,
        stream: Stream,
        address: SocketAddr,
        pending_permit: PendingPermit,
        held: Account,
    ) -> Pin<Box<dyn Future<Output = Result<(), Ended>> + Send>> {
        let session = stream.get_ref().1;
        let chain = session.peer_certificates().unwrap_or_default();
        held.take(holding::certificates(chain));
        let peer = Peer::new(address, chain.iter().map(|der| der.clone().into_owned()).collect());
        let peer = if self.served == Served::UserServer { peer.without_front_proxy() } else { peer };
        let http2 = session.alpn_protocol() == Some(tls::H2);
        let gateway = Arc::clone(&self.gateway);
        let connection = Arc::new(Connection::new(gateway, peer, self.served, self.core, held, pending_permit));
        if http2 { Box::pin(http2::serve(stream, connection)) } else { Box::pin(http1::serve(stream, connection)) }
    }

    /// Does the TLS handshake. Counts and logs one that fails or takes too long, or whose
    /// connection must end first: then returns `None`.
    async fn handshake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        pending_permit: &PendingPermit,
        held: &Account,
    ) -> Option<Stream> {
        let accepted = timeout(Limits::TLS_HANDSHAKE, self.tls.accept(LargeReads::new(stream)));
        let handshake = tokio::select! {
            // First: its room already belongs to another connection.
            biased;
            () = pending_permit.given_away() => Err(("closed to make room".to_owned(), Some(ConnectionLimit::Room))),
            () = held.ended() => Err(("the gateway reached --max-held-bytes".to_owned(), None)),
            accepted = accepted => match accepted {
                Ok(accepted) => accepted.map_err(|error| (words::io(&error), None)),
                Err(_) => {
                    Err((format!("not finished within {:?}", Limits::TLS_HANDSHAKE), Some(ConnectionLimit::Tls)))
                }
            },
        };
        match handshake {
            Ok(stream) => Some(stream),
            Err((reason, limit)) => {
                self.gateway.metrics.tls_failed();
                self.count_end(limit);
                tracing::debug!(%address, reason, "TLS handshake failed");
                None
            }
        }
    }

    fn count_end(&self, limit: Option<ConnectionLimit>) {
        if let Some(limit) = limit {
            self.gateway.metrics.connection_ended(limit);
        }
    }
}

/// Serves until the client is done. When asked to leave, finishes the requests in flight; when cut,
/// drops them. `serving` is boxed, because a future keeps space for what it has moved elsewhere.
async fn drive<C, E>(
    mut serving: Pin<Box<C>>,
    leave: impl Fn(Pin<&mut C>),
    connection: &Connection,
) -> Result<(), Ended>
where
    C: Future<Output = Result<(), E>>,
    Ended: From<E>,
{
    let drain = &connection.gateway().drain;
    let mut cut = pin!(Cut::new(connection));
    tokio::select! {
        biased;
        end = serving.as_mut() => return Ok(end?),
        why = cut.as_mut() => return Err(why),
        () = drain.soft() => {}
        () = connection.should_close() => {}
    }
    leave(serving.as_mut());
    tokio::select! {
        biased;
        () = drain.hard() => Ok(()),
        why = cut => Err(why),
        end = serving => Ok(end?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of connections may be idle, so the phases of a connection must not each have space
    /// in its task.
    #[test]
    fn the_task_of_an_idle_connection_is_small() {
        fn size<A, B, C, D, F: Future>(_: impl Fn(A, B, C, D) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = size(Server::connection);
        assert!(bytes <= 512, "{bytes} bytes");
    }
}
