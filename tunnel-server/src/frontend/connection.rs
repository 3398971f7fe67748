//! Serves one frontend's connection from either listener: HTTP/2 with many streams, or HTTP/1.1
//! with one.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use net::drain::Drain;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tunnel::{Incoming, LinkError, Serving};

use crate::egress::{self, Front};
use crate::relay::{self, Origin};
use crate::shared::Shared;

/// Longest wait for the end of a connection after the hard signal.
const AFTER_HARD: Duration = Duration::from_secs(1);

/// Serves HTTP/2 until the frontend leaves. A drain sends GOAWAY and lets its streams end.
pub async fn http2<T>(shared: Shared, origin: Origin, io: T)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let origin = Arc::new(origin);
    let serving = Serving::default();
    let (settings, drain) = (shared.settings.clone(), shared.drain.clone());
    let handler = {
        let (origin, serving) = (Arc::clone(&origin), serving.clone());
        move |incoming| {
            // Taken before the future is spawned, so that the drain misses no stream.
            let guard = shared.drain.guard();
            let (shared, origin, serving) = (shared.clone(), Arc::clone(&origin), serving.clone());
            // Boxed: the future lives as long as the stream, and would be moved several times.
            Box::pin(async move {
                stream(&shared, &origin, &serving, incoming).await;
                drop(guard);
            })
        }
    };
    let served = tunnel::serve(io, &settings, serving.clone(), handler);
    if let Err(error) = drive(served, &serving, &drain).await {
        tracing::debug!(frontend = %origin, %error, "a frontend's connection ended");
    }
}

/// Serves until the frontend is done. The soft signal lets its streams end; the hard signal drops
/// them.
async fn drive(
    served: impl Future<Output = Result<(), LinkError>>,
    serving: &Serving,
    drain: &Drain,
) -> Result<(), LinkError> {
    let mut served = pin!(served);
    tokio::select! {
        biased;
        end = served.as_mut() => return end,
        () = drain.soft() => serving.drain(),
    }
    tokio::select! {
        biased;
        end = served.as_mut() => return end,
        () = drain.hard() => serving.close(),
    }
    timeout(AFTER_HARD, served).await.unwrap_or(Err(LinkError::Closed))
}

async fn stream(shared: &Shared, origin: &Origin, serving: &Serving, mut incoming: Incoming) {
    let id = incoming.id();
    let (destination, cluster) = (incoming.destination.clone(), incoming.cluster.clone());
    let opened = tokio::select! {
        biased;
        opened = relay::open(shared, origin, cluster.as_ref(), &destination) => opened,
        () = incoming.cancelled() => return,
    };
    match opened {
        Err(refusal) => incoming.refuse(&refusal),
        Ok(relayed) => match incoming.accept_timed(relayed.timing()) {
            Ok(stream) => {
                let leaving = relayed.leaving();
                let splice = pin!(relayed.splice(shared, stream));
                telling(splice, leaving, || serving.tell_leaving(id)).await;
            }
            Err(error) => {
                tracing::debug!(frontend = %origin, %error, "the frontend left before the answer to its CONNECT");
            }
        },
    }
}

/// Runs `splice` to its end, and notifies the frontend when the agent is leaving, so that a client
/// with a connection pool inside the stream uses another connection.
async fn telling(
    mut splice: Pin<&mut impl Future<Output = ()>>,
    leaving: Option<CancellationToken>,
    tell: impl FnOnce(),
) {
    if let Some(leaving) = leaving {
        tokio::select! {
            biased;
            () = splice.as_mut() => return,
            () = leaving.cancelled() => tell(),
        }
    }
    splice.await;
}

/// Serves HTTP/1.1. `read` holds the bytes already read from `io`.
pub async fn http1<S: Front>(shared: Shared, origin: Origin, io: S, read: BytesMut) {
    tokio::select! {
        biased;
        () = egress::serve(&shared, &origin, io, read) => {}
        // A tunnel that is dropped is reset at both ends.
        () = shared.drain.hard() => {}
    }
}
