//! Raw HTTP/2: the test decides when windows are released, sees reset codes, and can leave any
//! stream in any state.

use std::fmt;
use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Method, Request, response};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::BoxedIo;
use crate::member::header_map;
use crate::wait::{WAIT, unless_quiet, within};

/// Largest body [`H2Body::to_end`] collects.
const MAX_BODY: usize = 256 << 20;

/// Settings this client announces.
#[derive(Clone, Copy, Debug)]
pub struct H2Options {
    /// Bytes the server may send on one stream before the test reads.
    pub stream_window: u32,
    /// Bytes the server may send on the connection before the test reads.
    pub connection_window: u32,
    /// Bytes of response head accepted.
    pub max_header_list: u32,
    /// Limit of the waits for the server: to connect, for room, for a head, for a piece of a body.
    pub wait: Duration,
}

/// One HTTP/2 connection. It is closed when dropped.
pub struct H2Connection {
    sender: SendRequest<Bytes>,
    base: String,
    wait: Duration,
    driver: Mutex<Option<JoinHandle<Result<(), h2::Error>>>>,
    abort: tokio::task::AbortHandle,
}

/// A request whose head was sent. Dropping it resets the stream with `CANCEL`.
#[derive(Debug)]
pub struct H2Exchange {
    upload: SendStream<Bytes>,
    response: ResponseFuture,
    wait: Duration,
}

/// The head of a response, and its body to be read.
#[derive(Debug)]
pub struct H2Response {
    /// Status and headers.
    pub head: response::Parts,
    /// The body.
    pub body: H2Body,
    /// The request body's side, if it was left open.
    pub upload: H2Upload,
}

/// The request body's side of an exchange.
#[derive(Debug)]
pub struct H2Upload(SendStream<Bytes>);

/// A response body. Dropping it before its end resets the stream with `CANCEL`.
#[derive(Debug)]
pub struct H2Body {
    stream: RecvStream,
    /// Bytes read whose window was not given back.
    held: usize,
    wait: Duration,
}

// === impl H2Options ===

impl Default for H2Options {
    fn default() -> Self {
        Self { stream_window: 1 << 20, connection_window: 256 << 20, max_header_list: 1 << 20, wait: WAIT }
    }
}

// === impl H2Connection ===

impl H2Connection {
    /// Speaks HTTP/2 over `io`. `base` is scheme and authority put before each target.
    pub async fn over(io: BoxedIo, base: String, options: H2Options) -> Result<Self, h2::Error> {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(options.stream_window)
            .initial_connection_window_size(options.connection_window)
            .max_header_list_size(options.max_header_list)
            .enable_push(false)
            .data_frame_budget(usize::MAX >> 1); // or many small unread frames would end the connection
        let wait = options.wait;
        let (sender, connection) = within(wait, "an HTTP/2 handshake", builder.handshake::<_, Bytes>(io)).await?;
        let driver = tokio::spawn(connection);
        Ok(Self { sender, base, wait, abort: driver.abort_handle(), driver: Mutex::new(Some(driver)) })
    }

    /// Sends a request without a body and returns the head of its response.
    pub async fn get(&self, target: &str, headers: &[(&str, &str)]) -> Result<H2Response, h2::Error> {
        self.send(Method::GET, target, headers, true).await?.response().await
    }

    /// Sends a request with a body and returns the head of its response.
    pub async fn call(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<H2Response, h2::Error> {
        let mut exchange = self.send(method, target, headers, false).await?;
        exchange.upload.send_data(body.into(), true)?;
        exchange.response().await
    }

    /// Sends the head of a request; its body is open unless `end`.
    pub async fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        end: bool,
    ) -> Result<H2Exchange, h2::Error> {
        let uri = format!("{}{target}", self.base);
        let mut request = Request::builder().method(method).uri(uri).body(()).expect("the test gives a valid target");
        *request.headers_mut() = header_map(headers);
        self.send_request(request, end).await
    }

    /// Sends the head of any request; its body is open unless `end`.
    pub async fn send_request(&self, request: Request<()>, end: bool) -> Result<H2Exchange, h2::Error> {
        let ready = self.sender.clone().ready();
        let mut sender = within(self.wait, "room for one more HTTP/2 stream", ready).await?;
        let (response, upload) = sender.send_request(request, end)?;
        Ok(H2Exchange { upload, response, wait: self.wait })
    }

    /// Number of streams that the server allows at once, as announced so far.
    pub fn max_streams(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// Waits for the end of the connection: an error shows GOAWAY codes and resets. Only the first
    /// caller gets it.
    pub async fn closed(&self) -> Result<(), h2::Error> {
        let driver = self.driver.lock().take().expect("only one caller waits for the end");
        within(WAIT, "the end of an HTTP/2 connection", driver).await.expect("the connection task does not panic")
    }
}

impl fmt::Debug for H2Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H2Connection").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Drop for H2Connection {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

// === impl H2Exchange ===

impl H2Exchange {
    /// Waits for the head of the response.
    pub async fn response(self) -> Result<H2Response, h2::Error> {
        let wait = self.wait;
        let (head, stream) = within(wait, "the head of an HTTP/2 response", self.response).await?.into_parts();
        Ok(H2Response { head, body: H2Body { stream, held: 0, wait }, upload: H2Upload(self.upload) })
    }

    /// As [`H2Exchange::response`], without a limit: for a `select!`, or for heads that never come.
    pub async fn response_unbounded(&mut self) -> Result<response::Parts, h2::Error> {
        let (head, _) = (&mut self.response).await?.into_parts();
        Ok(head)
    }

    /// Sends request body bytes; see [`H2Upload::send`].
    pub async fn send(&mut self, data: impl Into<Bytes>, end: bool) -> Result<(), h2::Error> {
        send(&mut self.upload, data.into(), end).await
    }

    /// Sends as many zero bytes as the server's windows take until they stay shut for `quiet`; see
    /// [`H2Upload::fill`].
    pub async fn fill(&mut self, quiet: Duration) -> Result<usize, h2::Error> {
        fill(&mut self.upload, quiet).await
    }

    /// Resets the stream.
    pub fn reset(mut self, reason: Reason) {
        self.upload.send_reset(reason);
    }

    /// Waits until the server resets the stream, and returns the code.
    pub async fn was_reset(&mut self) -> Result<Reason, h2::Error> {
        within(WAIT, "a reset by the server", poll_fn(|cx| self.upload.poll_reset(cx))).await
    }
}

// === impl H2Response ===

impl H2Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// The first value of a header, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    /// The whole body as JSON.
    pub async fn json(self) -> serde_json::Value {
        let body = self.body.to_end().await.expect("a whole body");
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)))
    }

    /// The whole body as text.
    pub async fn text(self) -> Result<String, h2::Error> {
        Ok(String::from_utf8_lossy(&self.body.to_end().await?).into_owned())
    }
}

// === impl H2Upload ===

impl H2Upload {
    /// Sends bytes, waiting (at most [`WAIT`]) for the server's window.
    pub async fn send(&mut self, data: impl Into<Bytes>, end: bool) -> Result<(), h2::Error> {
        send(&mut self.0, data.into(), end).await
    }

    /// Sends zero bytes until the server's windows stay shut for `quiet`; returns how many went
    /// out.
    pub async fn fill(&mut self, quiet: Duration) -> Result<usize, h2::Error> {
        fill(&mut self.0, quiet).await
    }

    /// Ends the request with trailers.
    pub fn trailers(&mut self, trailers: &[(&str, &str)]) -> Result<(), h2::Error> {
        self.0.send_trailers(header_map(trailers))
    }

    /// Resets the stream.
    pub fn reset(mut self, reason: Reason) {
        self.0.send_reset(reason);
    }
}

// === impl H2Body ===

impl H2Body {
    /// The next piece, its window given back; `None` at the proper end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, h2::Error>> {
        let chunk = self.chunk_held().await;
        self.release();
        chunk
    }

    /// The next piece, keeping its window: enough of these and the server has to stop.
    pub async fn chunk_held(&mut self) -> Option<Result<Bytes, h2::Error>> {
        let chunk = within(self.wait, "a piece of an HTTP/2 body", self.stream.data()).await?;
        if let Ok(bytes) = &chunk {
            self.held += bytes.len();
        }
        Some(chunk)
    }

    /// Gives back the window of everything read so far.
    pub fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.stream.flow_control().release_capacity(held).expect("not more than was received");
    }

    /// Reads to the end: an error when it is not a proper one.
    pub async fn to_end(mut self) -> Result<Bytes, h2::Error> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await {
            body.extend_from_slice(&chunk?);
            assert!(body.len() <= MAX_BODY, "a test body is smaller than {MAX_BODY} bytes");
        }
        Ok(body.into())
    }

    /// Reads one more line (with its newline), as watches send them; `None` at the proper end.
    pub async fn line(&mut self, rest: &mut Vec<u8>) -> Option<Result<String, h2::Error>> {
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                return Some(Ok(String::from_utf8_lossy(&line).into_owned()));
            }
            match self.chunk().await? {
                Ok(chunk) => rest.extend_from_slice(&chunk),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The trailers, after the last piece.
    pub async fn trailers(&mut self) -> Result<Option<HeaderMap>, h2::Error> {
        within(WAIT, "the trailers of an HTTP/2 body", self.stream.trailers()).await
    }
}

async fn send(stream: &mut SendStream<Bytes>, mut data: Bytes, end: bool) -> Result<(), h2::Error> {
    while !data.is_empty() {
        let capacity = within(WAIT, "window for an HTTP/2 upload", capacity(stream, data.len())).await?;
        let part = data.split_to(capacity.min(data.len()));
        stream.send_data(part, end && data.is_empty())?;
        if data.is_empty() {
            return Ok(());
        }
    }
    stream.send_data(data, end)
}

async fn fill(stream: &mut SendStream<Bytes>, quiet: Duration) -> Result<usize, h2::Error> {
    const PIECE: usize = 16 << 10;
    let mut sent = 0;
    while let Some(capacity) = unless_quiet(quiet, capacity(stream, PIECE)).await {
        let bytes = capacity?.min(PIECE);
        stream.send_data(Bytes::from(vec![0; bytes]), false)?;
        sent += bytes;
        assert!(sent <= MAX_BODY, "nobody stops this upload");
    }
    Ok(sent)
}

/// Waits for room to send at least one of `wanted` bytes.
async fn capacity(stream: &mut SendStream<Bytes>, wanted: usize) -> Result<usize, h2::Error> {
    stream.reserve_capacity(wanted);
    loop {
        if stream.capacity() > 0 {
            return Ok(stream.capacity());
        }
        match poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(Ok(0)) => {}
            Some(capacity) => return capacity,
            None => return Err(Reason::STREAM_CLOSED.into()),
        }
    }
}
