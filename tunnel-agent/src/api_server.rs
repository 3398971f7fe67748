//! Whether the cluster's API server answers: a linked agent that cannot reach it is useless.
//!
//! Any answer to `GET /readyz` counts, a 401 as well as a 200, because no credential is sent. If
//! the cluster's CA is known, the certificate is verified, so that another server on the same
//! address does not count.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{CONNECTION, HOST};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use net::dial::{self, DialError};
use net::follow::{self, Complaints};
use net::opened::Opened;
use net::tls;
use net::tls::client::{Trust, TrustError, config};
use net::transport::Transport;
use net::words::{self, causes};
use rustls_pki_types::ServerName;
use telemetry::readiness::{NotReady, Readiness};
use tokio::time::{Instant, interval, timeout};

use crate::args::ApiServer;
use crate::metrics::Metrics;

/// Name of the readiness condition that waits for the first answer.
pub const CONDITION: &str = "api-server";
const INTERVAL: Duration = Duration::from_secs(10);
/// Interval while it does not answer.
const INTERVAL_WHEN_SILENT: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why the API server does not count as answering.
#[derive(Debug, thiserror::Error)]
enum NotAnswering {
    #[error("the CA of this cluster cannot be read: {}", words::io(.0))]
    Ca(io::Error),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("its host is not a DNS name or IP address")]
    Name,
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("TLS: {}", words::io(.0))]
    Tls(io::Error),
    #[error("no HTTP answer: {0}")]
    Http(#[source] hyper::Error),
    #[error("no answer within {TIMEOUT:?}")]
    Timeout,
}

/// Asks forever, and blocks readiness until the first answer: from this call on, even before the
/// future runs.
pub fn watch(api_server: ApiServer, readiness: Readiness, metrics: Metrics) -> impl Future<Output = ()> + Send {
    let not_ready = readiness.block(CONDITION);
    ask_for_ever(api_server, readiness, not_ready, metrics)
}

async fn ask_for_ever(api_server: ApiServer, readiness: Readiness, not_ready: NotReady, metrics: Metrics) {
    let mut not_ready = Some(not_ready);
    let mut complaints = Complaints::default();
    let mut ticks = interval(INTERVAL_WHEN_SILENT);
    let mut next = None;
    loop {
        let now = ticks.tick().await;
        if next.is_some_and(|next| now < next) {
            continue;
        }
        let answered = timeout(TIMEOUT, ask(&api_server)).await.unwrap_or(Err(NotAnswering::Timeout));
        metrics.api_server_up.set(answered.is_ok().into());
        match answered {
            Ok(()) => {
                if not_ready.take().is_some() {
                    tracing::info!(api_server = %api_server.place, "the API server answers");
                }
                complaints.clear();
                next = Some(now + INTERVAL);
            }
            Err(error) => {
                if let Some(reason) = complaints.new_cause(&causes(&error)) {
                    tracing::warn!(api_server = %api_server.place, reason, "the API server does not answer");
                }
                not_ready.get_or_insert_with(|| readiness.block(CONDITION));
            }
        }
    }
}

async fn ask(api_server: &ApiServer) -> Result<(), NotAnswering> {
    let (host, port) = (api_server.place.host(), api_server.place.port());
    // Read each time: it is one small file, and may be rotated.
    let pem =
        api_server.ca.as_ref().map(|path| follow::read(path, follow::LONGEST)).transpose().map_err(NotAnswering::Ca)?;
    let tls = config(pem.as_deref().map_or(Trust::Insecure, Trust::Bundle), None)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| NotAnswering::Name)?;
    let socket = dial::connect(host, port, Instant::now() + TIMEOUT).await?;
    let stream = Opened::Tcp(socket).secure(&tls, name, &[tls::HTTP_11]).await.map_err(NotAnswering::Tls)?;
    get(stream, &api_server.place.to_string()).await.map_err(NotAnswering::Http)
}

async fn get(stream: Transport, host: &str) -> hyper::Result<()> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/readyz").header(HOST, host).header(CONNECTION, "close").body(Empty::<Bytes>::new());
    let mut answer = pin!(sender.send_request(request.expect("a valid request")));
    tokio::select! {
        answer = &mut answer => answer.map(drop),
        // The connection has ended, with the answer or before it: the other future knows.
        _ = connection => answer.await.map(drop),
    }
}

#[cfg(test)]
mod tests;
