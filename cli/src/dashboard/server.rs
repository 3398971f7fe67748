//! Serves HTTP/1.1 on the loopback address.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use net::accept;
use net::pending::{Connections, Pending, PendingPermit};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use super::{Dashboard, answer};

/// Most concurrent connections. A browser has six, and the stream of events of each tab takes one.
/// A further connection replaces the oldest one that has sent no admitted request: any user of this
/// machine can open connections, and send nothing.
const CONNECTIONS: usize = 64;
/// Time for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Largest head, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// Serves forever.
pub async fn run(listener: TcpListener, dashboard: &Arc<Dashboard>) {
    let room = Connections::new(CONNECTIONS, Pending::new(CONNECTIONS, CONNECTIONS));
    // Connections end with this future.
    let mut connections = JoinSet::new();
    let next = || async {
        let (stream, address) = accept::tcp(&listener).await?;
        Ok((stream, room.enter(address.ip()).await))
    };
    let take = |(stream, (place, pending))| {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(Arc::clone(dashboard), stream, place, pending));
    };
    accept::each("browsers", next, take).await;
}

async fn serve(dashboard: Arc<Dashboard>, stream: TcpStream, _place: OwnedSemaphorePermit, pending: PendingPermit) {
    let given_away = pending.token();
    let pending = Mutex::new(Some(pending));
    let service = service_fn(async |request: http::Request<hyper::body::Incoming>| {
        Ok::<_, Infallible>(match dashboard.door.admit(&request) {
            Ok(path) => {
                drop(pending.lock().take());
                answer::to(&dashboard, path, request.uri().query()).await
            }
            Err(refused) => answer::refusal(refused),
        })
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_HEAD);
    tokio::select! {
        // A browser may leave at any moment: that is no error.
        _ = server.serve_connection(TokioIo::new(stream), service) => {}
        () = given_away.cancelled() => {}
    }
}
