//! Exchanges one request and response with a member apart from callers' requests, on its own
//! connection. The exchange shows what a caller's request would meet, including the dial.

use std::error::Error;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use net::tls;

use super::{ConnectError, Target};

/// A body, or why there is none: the connection ended, or the body is too long
/// ([`http_body_util::LengthLimitError`]).
pub type Read = Result<Bytes, Box<dyn Error + Send + Sync>>;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error(transparent)]
    Connect(ConnectError),
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    #[error(transparent)]
    Unfit(#[from] http::Error),
}

/// Sends `request`, whose URI is a path, and reads at most `most` bytes of the response body. The
/// caller must set a timeout.
pub async fn exchange(
    target: &Target,
    mut request: Request<Full<Bytes>>,
    most: usize,
) -> Result<Response<Read>, Unanswered> {
    let transport = target.connect_any(&target.held(0), None).await.map_err(Unanswered::Connect)?;
    if transport.alpn() == Some(tls::H2) {
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        (uri.scheme, uri.authority) = (Some(target.scheme.clone()), Some(target.authority.clone()));
        *request.uri_mut() = Uri::from_parts(uri).map_err(http::Error::from)?;
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(transport)).await?;
        while_open(connection, async { Ok(read(sender.send_request(request).await?, most).await) }).await
    } else {
        request.headers_mut().insert(HOST, target.host_header.clone());
        let (mut sender, connection) = http1::handshake(TokioIo::new(transport)).await?;
        while_open(connection, async { Ok(read(sender.send_request(request).await?, most).await) }).await
    }
}

/// Drives the connection until the exchange ends.
async fn while_open(
    connection: impl Future<Output = hyper::Result<()>>,
    exchange: impl Future<Output = Result<Response<Read>, Unanswered>>,
) -> Result<Response<Read>, Unanswered> {
    tokio::select! {
        biased;
        answer = exchange => answer,
        // A clean end leaves the exchange to finish; an error ends the exchange too.
        Err(error) = connection => Err(error.into()),
    }
}

async fn read(answer: Response<Incoming>, most: usize) -> Response<Read> {
    let (head, body) = answer.into_parts();
    Response::from_parts(head, Limited::new(body, most).collect().await.map(Collected::to_bytes))
}
