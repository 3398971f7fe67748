//! The member's side of an upgrade: sends the request, passes on a refusal, joins the connections.

mod refusal;

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use api::cluster_name::ClusterName;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use hyper::client::conn::http1;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use net::cancellation::Cancellation;
use net::drain::{Drain, DrainGuard};
use net::prefixed::Prefixed;
use net::pump::{Moved, pump_observed};
use net::transport::Transport;
use net::words::{self, causes};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::super::{Answer, Call};
use crate::body::{Peeked, ResponseBody};
use crate::headers;
use crate::holding::{self, Account};
use crate::metrics::ClusterMetrics;
use crate::record::Record;
use crate::request::upgrade::Upgrade;
use crate::request_body::RequestBody;
use crate::upstream::{ConnectionBytes, Counted, HEADER_BYTES, HEADER_LINES, HeldIncoming, Reading, SendError};

pub use self::refusal::refused;
/// Timeout between the member's 101 and the client's raw connection.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// Timeout between a refusal and the end of its connection: the refusal must be sent first.
const CLOSE_WITHIN: Duration = Duration::from_secs(15);

/// Two connections that an upgrade joined to a byte pipe.
pub struct UpgradedPair {
    client: OnUpgrade,
    member: OnUpgrade,
    // Only the name: the cluster's pooled connections must close when it is unregistered, however
    // long this pair lasts.
    cluster: ClusterName,
    metrics: Arc<ClusterMetrics>,
    user: String,
    account: Account,
    /// Cancelled when the cluster is no longer registered.
    ended: CancellationToken,
    drain: Drain,
    guard: DrainGuard,
}

/// Sends the upgrade request on a connection that serves no other request, before or after
/// (CVE-2018-1002105).
///
/// An incomplete head counts for the member, in `held`; the bytes after it count for the request,
/// in `account`.
pub async fn ask(
    transport: Transport,
    request: Request<RequestBody>,
    held: &ConnectionBytes,
    account: &Account,
) -> Result<Response<HeldIncoming>, SendError> {
    let broken = |error: hyper::Error| {
        if held.account.is_ended() { SendError::Shed } else { SendError::Broken(error.into()) }
    };
    let (reading, buffer) = Reading::new(transport, &held.account);
    let handshake =
        http1::Builder::new().max_buf_size(HEADER_BYTES).max_headers(HEADER_LINES).handshake(TokioIo::new(reading));
    let (mut sender, connection) = handshake.await.map_err(broken)?;
    let connection = Counted::new(connection.with_upgrades(), held);
    // As in `upstream::h1`: without its request, it does not wait for a member that reads nothing.
    let driver = AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }));
    let response = sender.send_request(request).await.map_err(broken)?;
    buffer.expect_body(true);
    let is_agreed = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let response = response.map(|body| HeldIncoming::new(body, Some((account.tally(), buffer))));
    if !is_agreed {
        return Ok(response.map(|body| body.ending(driver)));
    }
    // It ends by itself when it has handed the connection over.
    drop(driver.detach());
    if let Some(backlog) = &held.backlog {
        backlog.count_for(account);
    }
    Ok(response)
}

/// Ends the client's connection after a refusal.
///
/// hyper hands over a connection with a pending upgrade once its last response is sent, whatever
/// that was. To drop the connection would end it without TLS's `close_notify` and without
/// lingering, so it is shut down like any other.
pub async fn close(client: OnUpgrade) {
    let closing = async { TokioIo::new(client.await.ok()?).shutdown().await.ok() };
    let _ = timeout(CLOSE_WITHIN, closing).await;
}

/// Passes the 101 on. hyper hands over the client's connection only after the 101 is sent, so the
/// two connections are joined later.
pub fn join(client: OnUpgrade, mut member: Response<Peeked<HeldIncoming>>, call: &Call<'_>) -> Answer {
    let upgraded = hyper::upgrade::on(&mut member);
    let mut switching = Response::new(ResponseBody::empty());
    *switching.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let protocol = Upgrade::agreed(member.headers());
    let mut kept = std::mem::take(member.headers_mut());
    headers::to_client(&mut kept);
    // RFC 9110 §8.6, RFC 9112 §6.1: a 1xx has neither.
    kept.remove(CONTENT_LENGTH);
    kept.remove(TRANSFER_ENCODING);
    protocol.write(&mut kept);
    *switching.headers_mut() = kept;
    Answer { response: switching, joined: Some(Box::new(UpgradedPair::new(client, upgraded, call))) }
}

// === impl UpgradedPair ===

impl UpgradedPair {
    fn new(client: OnUpgrade, member: OnUpgrade, call: &Call<'_>) -> Self {
        let drain = call.drain().clone();
        Self {
            client,
            member,
            cluster: call.cluster.name().clone(),
            metrics: Arc::clone(call.cluster.metrics()),
            user: call.permission.user().name.clone(),
            account: call.account().clone(),
            ended: call.cluster.ended().clone(),
            guard: drain.guard(),
            drain,
        }
    }

    /// Copies in both directions until one connection ends; `record` ends then.
    pub async fn carry(self: Box<Self>, record: Record) {
        let Self { client, member, cluster, metrics, user, account, ended, drain, guard: _guard } = *self;
        let open = metrics.upgrade();
        let started = Instant::now();
        tracing::info!(%cluster, user, "upgrade opened");
        let mut moved = Moved::default();
        let end = tokio::select! {
            biased;
            () = drain.hard() => "gateway shutting down".to_owned(),
            () = Cancellation::of(ended) => "the cluster is no longer registered".to_owned(),
            end = carry(client, member, &mut moved, &account) => end,
        };
        drop((open, record));
        metrics.upgrade_moved(moved.a_to_b + moved.b_to_a);
        tracing::info!(
            %cluster,
            user,
            seconds = started.elapsed().as_secs_f64(),
            bytes_to_member = moved.a_to_b,
            bytes_to_client = moved.b_to_a,
            end,
            "upgrade closed"
        );
    }
}

/// Waits for both connections, then copies until one of them ends. Returns why.
async fn carry(client: OnUpgrade, member: OnUpgrade, moved: &mut Moved, account: &Account) -> String {
    let both = timeout(JOIN_WITHIN, async { tokio::try_join!(client, member) });
    let (client, member): (Upgraded, Upgraded) = match both.await {
        Ok(Ok(both)) => both,
        Ok(Err(error)) => return format!("not joined: {}", causes(&error)),
        Err(_) => return format!("not joined within {JOIN_WITHIN:?}"),
    };
    let mut member = match from_http(member, account) {
        Ok(member) => member,
        Err(reason) => return reason.to_owned(),
    };
    // For both connections: the client's connection stops counting itself when its HTTP ends.
    account.take(2 * holding::CONNECTION);
    let mut counted = 0;
    let observe = |cx: &mut Context<'_>, bytes| {
        account.recount(&mut counted, bytes);
        account.check(cx)
    };
    match pump_observed(&mut TokioIo::new(client), &mut member, moved, observe).await {
        Ok(()) => "closed".to_owned(),
        Err(error) => words::io(&error),
    }
}

/// Takes the member's connection out of its HTTP buffer. Bytes that followed the 101 count for the
/// request until they are passed on.
fn from_http(member: Upgraded, account: &Account) -> Result<Prefixed<Transport>, &'static str> {
    let Ok(parts) = member.downcast::<TokioIo<Reading<Transport>>>() else {
        return Err("not joined: the member's connection is of another kind");
    };
    let early = account.charge(Bytes::copy_from_slice(&parts.read_buf));
    Ok(Prefixed::new(parts.io.into_inner().into_inner(), early))
}
