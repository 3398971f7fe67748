//! The answers a script can give.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::{Piece, RecordedBody, ReplyBody};
use super::record::{Ending, Exchange, Recorded};
use crate::server::Body;
use crate::status::status;
use crate::wait::{Gate, WAIT, within};

/// Pieces of a stream that may wait for the caller to read them.
const PIECES: usize = 16;

/// Serves the byte stream after a 101.
type Upgrader = Box<dyn FnOnce(TokioIo<Upgraded>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The member's reply to one request.
pub enum Reply {
    /// Reads the request body to its end, then answers whole, with `Content-Length`.
    Full(StatusCode, HeaderMap, Bytes),
    /// Answers at once with the pieces from the channel, reading the request body meanwhile. The
    /// stream ends with the channel.
    Stream(StatusCode, HeaderMap, mpsc::Receiver<Piece>),
    /// Answers 200 at once and sends the request body (and trailers) back as it comes.
    Echo,
    /// Never answers, and reads nothing of the request body.
    Never,
    /// Answers without reading anything of the request body.
    Early(StatusCode, Bytes),
    /// Answers 101 with these headers and hands the byte stream to the function (HTTP/1.1 only).
    Upgrade(HeaderMap, Upgrader),
    /// Does nothing until the gate opens, then the other.
    Gated(Gate, Box<Reply>),
}

/// The test's end of a [`Reply::Stream`]. Dropping it ends the stream properly.
#[derive(Clone, Debug)]
pub struct StreamSender(mpsc::Sender<Piece>);

/// Streams opened on one path, in order. See [`FakeMember::streams`](super::FakeMember::streams).
#[derive(Debug)]
pub struct Streams {
    path: String,
    opened: mpsc::Receiver<(Recorded, StreamSender)>,
}

// === impl Reply ===

impl Reply {
    /// Answers with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::full(status, &[("content-type", "application/json")], body.to_string())
    }

    /// Answers with these headers and bytes.
    pub fn full(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        Self::Full(code(status), header_map(headers), body.into())
    }

    /// Answers with the sender's pieces.
    pub fn stream(status: u16, headers: &[(&str, &str)]) -> (StreamSender, Self) {
        let (sender, receiver) = mpsc::channel(PIECES);
        (StreamSender(sender), Self::Stream(code(status), header_map(headers), receiver))
    }

    /// Answers without reading the request body.
    pub fn early(status: u16, body: impl Into<Bytes>) -> Self {
        Self::Early(code(status), body.into())
    }

    /// Answers 101 to an upgrade to `protocol`, then runs `script` on the byte stream.
    pub fn upgrade<F>(protocol: &str, script: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let headers = header_map(&[("connection", "Upgrade"), ("upgrade", protocol)]);
        Self::Upgrade(headers, Box::new(move |io| Box::pin(script(io))))
    }

    /// Answers 101 to an upgrade to `protocol`, then sends every byte back until the caller closes.
    pub fn upgrade_echo(protocol: &str) -> Self {
        Self::upgrade(protocol, |io| async move {
            let (mut reader, mut writer) = tokio::io::split(io);
            let _ = tokio::io::copy(&mut reader, &mut writer).await; // an error is the caller leaving
            let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
        })
    }

    /// Holds `self` back until `gate` opens.
    #[must_use]
    pub fn after(self, gate: &Gate) -> Self {
        Self::Gated(gate.clone(), Box::new(self))
    }

    /// Answers with the Status of a failure.
    pub fn status(code: u16, message: &str) -> Self {
        Self::json(code, &status(code, message))
    }

    /// The Status a Kubernetes API server gives for a path it does not know.
    pub fn not_found() -> Self {
        Self::status(404, "the server could not find the requested resource")
    }

    pub(super) async fn answer(self, exchange: Exchange, mut body: RecordedBody, upgrade: OnUpgrade) -> Response<Body> {
        let mut reply = self;
        while let Self::Gated(gate, then) = reply {
            gate.passed().await;
            reply = *then;
        }
        match reply {
            Self::Full(status, headers, bytes) => {
                body.read_to_end().await;
                respond(status, headers, ReplyBody::full(bytes), exchange)
            }
            Self::Stream(status, headers, pieces) => {
                respond(status, headers, ReplyBody::pieces(pieces, body), exchange)
            }
            Self::Echo => respond(StatusCode::OK, HeaderMap::new(), ReplyBody::echo(body), exchange),
            Self::Never => {
                let _held = (exchange, body);
                std::future::pending().await
            }
            Self::Early(status, bytes) => {
                drop(body);
                respond(status, HeaderMap::new(), ReplyBody::full(bytes), exchange)
            }
            Self::Upgrade(headers, script) => {
                body.read_to_end().await;
                // Ends with the connection at the latest: the byte stream fails then.
                tokio::spawn(async move {
                    if let Ok(upgraded) = upgrade.await {
                        script(TokioIo::new(upgraded)).await;
                    }
                });
                respond(StatusCode::SWITCHING_PROTOCOLS, headers, ReplyBody::full(Bytes::new()), exchange)
            }
            Self::Gated(..) => unreachable!("unwrapped above"),
        }
    }
}

fn respond(status: StatusCode, headers: HeaderMap, body: ReplyBody, exchange: Exchange) -> Response<Body> {
    // The body of an answer to HEAD is never asked for.
    if exchange.request().method == Method::HEAD {
        exchange.end(Ending::Completed);
    }
    let mut response = Response::new(Body::new(body.of(exchange)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("a script names a valid status")
}

/// Header lines from pairs, in order, repetitions kept.
pub(crate) fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&str, &str)| {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a script names a valid header");
        (name, HeaderValue::from_bytes(value.as_bytes()).expect("a script gives a valid header value"))
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers.iter().map(line) {
        map.append(name, value);
    }
    map
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(status, ..) => write!(f, "Full({status})"),
            Self::Stream(status, ..) => write!(f, "Stream({status})"),
            Self::Echo => f.write_str("Echo"),
            Self::Never => f.write_str("Never"),
            Self::Early(status, _) => write!(f, "Early({status})"),
            Self::Upgrade(headers, _) => write!(f, "Upgrade({:?})", headers.get(header::UPGRADE)),
            Self::Gated(_, then) => write!(f, "Gated({then:?})"),
        }
    }
}

// === impl StreamSender ===

impl StreamSender {
    /// Sends bytes; waits (at most [`WAIT`]) while the caller does not read. False when the caller
    /// is gone.
    pub async fn send(&self, data: impl Into<Bytes>) -> bool {
        self.piece(Piece::Data(data.into())).await
    }

    /// Queues bytes if there is room now: false when the caller reads too slowly or is gone.
    pub fn try_send(&self, data: impl Into<Bytes>) -> bool {
        self.0.try_send(Piece::Data(data.into())).is_ok()
    }

    /// Sends one line of a watch: `{"type": …, "object": …}` and a newline.
    pub async fn event(&self, kind: &str, object: &Value) -> bool {
        self.send(format!("{}\n", json!({"type": kind, "object": object}))).await
    }

    /// Ends the stream with trailers.
    pub async fn trailers(self, trailers: &[(&str, &str)]) -> bool {
        self.piece(Piece::Trailers(header_map(trailers))).await
    }

    /// Ends the stream abnormally.
    pub async fn abort(self) -> bool {
        self.piece(Piece::Abort).await
    }

    /// Whether the caller stopped taking the answer.
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until the caller stopped taking the answer.
    pub async fn gone(&self) {
        within(WAIT, "the caller of a stream going away", self.0.closed()).await;
    }

    async fn piece(&self, piece: Piece) -> bool {
        within(WAIT, "room in a stream", self.0.send(piece)).await.is_ok()
    }
}

// === impl Streams ===

impl Streams {
    pub(super) fn new(path: &str, opened: mpsc::Receiver<(Recorded, StreamSender)>) -> Self {
        Self { path: path.to_owned(), opened }
    }

    /// The next stream opened on the path, with the request that opened it; waits for one.
    pub async fn next(&mut self) -> (Recorded, StreamSender) {
        let opened = within(WAIT, format_args!("a stream on {}", self.path), self.opened.recv()).await;
        opened.expect("the script of this path was not replaced")
    }
}
