//! When a connection to a member is given up although it works.

use std::sync::Arc;

use net::cancellation::Cancellation;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::upstream::h2::connection::Connection;

/// Completes when the cluster is no longer registered, or when the way to the member is about to
/// close and no request is left on the connection; new ones are not accepted meanwhile.
pub(in crate::upstream::h2::connection) async fn retired(
    leaving: Option<CancellationToken>,
    connection: std::sync::Weak<Connection>,
    emptied: Arc<Notify>,
    ended: CancellationToken,
) {
    tokio::select! {
        // No order is needed, but without this each poll would choose one by a random number.
        biased;
        () = emptied_to_leave(leaving, connection, emptied) => {}
        () = Cancellation::of(ended) => {}
    }
}

async fn emptied_to_leave(
    leaving: Option<CancellationToken>,
    connection: std::sync::Weak<Connection>,
    emptied: Arc<Notify>,
) {
    match leaving {
        Some(leaving) => Cancellation::of(leaving).await,
        None => std::future::pending().await,
    }
    let unused = connection.upgrade().is_none_or(|connection| {
        connection.close();
        // Leases are made on this core's thread, where this runs too.
        connection.is_unused()
    });
    if !unused {
        emptied.notified().await;
    }
}
