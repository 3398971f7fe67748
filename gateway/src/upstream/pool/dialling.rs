//! One dial for all requests that wait for a connection.

use std::sync::{Arc, Weak};

use net::tls;
use tokio::sync::watch;
use traces::Span;

use super::Pool;
use crate::metrics::InFlight;
use crate::spans;
use crate::upstream::connect::{ConnectError, Target};
use crate::upstream::{ConnectionBytes, h1, h2};

pub(super) enum Dialled {
    H2(Arc<h2::Connection>),
    H1(h1::Connection),
}

/// Runs one shared dial, as its own task. Holds the pool weakly, because the dial is of no use once
/// the cluster is gone.
pub(super) async fn dial(
    held: ConnectionBytes,
    target: Arc<Target>,
    pool: Weak<Pool>,
    report: watch::Sender<Option<Result<(), Arc<ConnectError>>>>,
    span: Option<Span>,
) {
    let outcome = async {
        let transport = target.connect_any(&held, span.as_ref().map(Span::trace)).await?;
        let Some(pool) = pool.upgrade() else {
            return Ok(None);
        };
        if transport.alpn() == Some(tls::H2) {
            let (open, room) = (InFlight::new(pool.metrics.connections()), Arc::clone(&pool.room));
            drop(pool);
            let leaving = transport.leaving();
            return h2::Connection::start(transport, &target, held, open, room, leaving)
                .await
                .map(Dialled::H2)
                .map(Some);
        }
        let permit =
            pool.h1_permit().ok_or(ConnectError::Exhausted { address: target.address(), limit: h1::MAX_OPEN })?;
        drop(pool);
        h1::Connection::start(transport, permit, &target, held).await.map(Dialled::H1).map(Some)
    };
    let outcome = outcome.await;
    spans::ended(span, &outcome, ConnectError::kind);
    if let Some(pool) = pool.upgrade() {
        let outcome = outcome.map(|dialled| dialled.expect("the pool lives, so the dial was carried through"));
        let _ = report.send(Some(pool.dialled(outcome)));
    }
}
