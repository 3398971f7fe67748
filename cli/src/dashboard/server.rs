//! HTTP/1.1 on loopback.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use net::accept;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Dashboard, answer};

/// Connections at a time; more wait in the kernel. A browser has six, of which streams of events
/// take one a tab.
const CONNECTIONS: usize = 64;
/// For the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Longest head.
const LARGEST_HEAD: usize = 16 << 10;

/// Serves for ever.
pub async fn run(listener: TcpListener, dashboard: &Arc<Dashboard>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // They end with this future.
    let mut connections = JoinSet::new();
    let next = || async {
        let permit = Arc::clone(&room).acquire_owned().await.expect("never closed");
        Ok((accept::tcp(&listener).await?, permit))
    };
    let take = |((stream, _), permit)| {
        while connections.try_join_next().is_some() {}
        let dashboard = Arc::clone(dashboard);
        connections.spawn(async move {
            let service = service_fn(|request| {
                let dashboard = Arc::clone(&dashboard);
                async move { Ok::<_, Infallible>(answer::to(&dashboard, &request).await) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_HEAD);
            // A browser may leave at any moment: that is nobody's error.
            drop(server.serve_connection(TokioIo::new(stream), service).await);
            drop(permit);
        });
    };
    accept::each("browsers", next, take).await;
}
