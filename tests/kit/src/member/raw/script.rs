//! The acts of a raw connection, and the scripts that tests need most.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::pki::ALPN_H1;
use crate::wait::Gate;

/// One step of a raw connection.
#[derive(Clone, Debug)]
pub enum Act {
    /// Accept TLS, selecting from these protocols. Before it, bytes are plain TCP.
    Tls(&'static [&'static str]),
    /// Read a request head up to its blank line and remember it.
    ReadHead,
    /// Read exactly this many bytes.
    Read(usize),
    /// Write and flush these bytes, in one write.
    Write(Bytes),
    /// Send back everything received, until the caller ends its side.
    Echo,
    /// Read and drop everything until the caller ends its side.
    ReadToEnd,
    /// Wait for the test.
    Wait(Gate),
    /// Keep the connection open, reading nothing, as long as the member lives.
    Hold,
    /// End properly: `close_notify` if in TLS, then FIN.
    Close,
    /// End the TCP connection by FIN without `close_notify`, as a truncation attack or a killed
    /// process does.
    Abandon,
    /// End the TCP connection by RST.
    Reset,
    /// Hand the connection, which must have TLS by now, to a function, and close it when that is
    /// done: the last act. Its bytes are not recorded. An error of the function counts as the
    /// caller's leaving.
    Serve(Service),
}

/// A function that serves a connection from [`Act::Serve`] on.
#[derive(Clone)]
pub struct Service(Arc<dyn Fn(TlsStream<TcpStream>) -> Served + Send + Sync>);

type Served = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

// === impl Act ===

impl Act {
    /// Write text.
    pub fn write(text: impl Into<Bytes>) -> Self {
        Self::Write(text.into())
    }

    /// Reset the connection as soon as it is accepted.
    pub fn reset_on_accept() -> Vec<Self> {
        vec![Self::Reset]
    }

    /// Accept TCP and never send a byte: the TLS handshake hangs.
    pub fn silent() -> Vec<Self> {
        vec![Self::Hold]
    }

    /// Read the request head, then reset.
    pub fn reset_after_head() -> Vec<Self> {
        vec![Self::Tls(ALPN_H1), Self::ReadHead, Self::Reset]
    }

    /// Read the request head, then close without an answer.
    pub fn close_after_head() -> Vec<Self> {
        vec![Self::Tls(ALPN_H1), Self::ReadHead, Self::Close]
    }

    /// Answer `answer`, byte for byte, and end the connection by `last`.
    pub fn answer(answer: impl Into<Bytes>, last: Self) -> Vec<Self> {
        vec![Self::Tls(ALPN_H1), Self::ReadHead, Self::write(answer), last]
    }

    /// Announce 10 bytes, send 5, close.
    pub fn half_content_length() -> Vec<Self> {
        Self::answer("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhello", Self::Close)
    }

    /// Send one whole chunk and half of another, close.
    pub fn half_chunked() -> Vec<Self> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
        Self::answer(format!("{head}5\r\nhello\r\n5\r\nwo"), Self::Close)
    }

    /// Answer 101 to an upgrade, with `first` in the same write as the head, then echo.
    pub fn upgrade(protocol: &str, first: &[u8]) -> Vec<Self> {
        let head = format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n");
        let answer = [head.as_bytes(), first].concat();
        vec![Self::Tls(ALPN_H1), Self::ReadHead, Self::write(answer), Self::Echo, Self::Close]
    }

    /// Answer `status` (such as `403 Forbidden`) with `headers` (lines ending in CRLF) and `body`
    /// instead of upgrading.
    pub fn refuse_upgrade(status: &str, headers: &str, body: &str) -> Vec<Self> {
        let length = body.len();
        Self::answer(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"), Self::ReadToEnd)
    }

    /// Hand the connection to `service`.
    pub fn serve<F>(service: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::Serve(Service(Arc::new(move |io| Box::pin(service(io)))))
    }
}

// === impl Service ===

impl Service {
    pub(super) fn run(&self, io: TlsStream<TcpStream>) -> Served {
        (self.0)(io)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Service")
    }
}
