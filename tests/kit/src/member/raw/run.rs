//! Runs the script of one raw connection.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Act, Service, Shared};

/// Bytes read at once.
const BUFFER: usize = 16 << 10;
/// The end of a request head.
const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// One connection and what its script has not consumed yet.
pub(super) struct Runner {
    stream: Stream,
    number: usize,
    shared: Arc<Shared>,
    /// Received but not consumed by an act.
    unread: Vec<u8>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Closed,
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

// === impl Runner ===

impl Runner {
    pub(super) fn new(tcp: TcpStream, number: usize, shared: Arc<Shared>) -> Self {
        let _ = tcp.set_nodelay(true); // fails only on a socket that is gone already
        Self { stream: Stream::Plain(tcp), number, shared, unread: Vec::new() }
    }

    /// Runs `script` to its end, or until the caller makes an act impossible.
    pub(super) async fn run(mut self, script: Vec<Act>) {
        for act in script {
            if self.act(act).await.is_err() {
                self.shared.update(self.number, |connection| connection.caller_closed = true);
                break;
            }
        }
        self.stream = Stream::Closed;
        self.shared.update(self.number, |connection| connection.ended = true);
    }

    async fn act(&mut self, act: Act) -> io::Result<()> {
        match act {
            Act::Tls(alpn) => self.accept_tls(alpn).await,
            Act::ReadHead => self.read_head().await,
            Act::Read(bytes) => self.read_exactly(bytes).await,
            Act::Write(bytes) => self.write(&bytes).await,
            Act::Echo => self.until_end(true).await,
            Act::ReadToEnd => self.until_end(false).await,
            Act::Wait(gate) => {
                gate.passed().await;
                Ok(())
            }
            Act::Hold => std::future::pending().await,
            Act::Close => self.close().await,
            Act::Abandon => self.abandon().await,
            Act::Reset => self.reset(),
            Act::Serve(service) => self.serve(&service).await,
        }
    }

    async fn accept_tls(&mut self, alpn: &[&str]) -> io::Result<()> {
        let Stream::Plain(tcp) = std::mem::replace(&mut self.stream, Stream::Closed) else {
            return Err(io::Error::other("TLS inside TLS"));
        };
        let tls = TlsAcceptor::from(self.shared.tls(alpn)).accept(tcp).await?;
        self.stream = Stream::Tls(Box::new(tls));
        Ok(())
    }

    async fn serve(&mut self, service: &Service) -> io::Result<()> {
        let Stream::Tls(tls) = std::mem::replace(&mut self.stream, Stream::Closed) else {
            return Err(io::Error::other("no TLS"));
        };
        if !self.unread.is_empty() {
            return Err(io::Error::other("bytes that no act consumed"));
        }
        service.run(*tls).await
    }

    async fn read_head(&mut self) -> io::Result<()> {
        let end = loop {
            match self.unread.windows(BLANK_LINE.len()).position(|window| window == BLANK_LINE) {
                Some(start) => break start + BLANK_LINE.len(),
                None => self.fill().await?,
            }
        };
        let rest = self.unread.split_off(end);
        let head = Bytes::from(std::mem::replace(&mut self.unread, rest));
        self.shared.update(self.number, |connection| connection.heads.push(head));
        Ok(())
    }

    async fn read_exactly(&mut self, bytes: usize) -> io::Result<()> {
        while self.unread.len() < bytes {
            self.fill().await?;
        }
        self.unread.drain(..bytes);
        Ok(())
    }

    /// Reads until the caller ends its side, sending everything back if `echo`.
    async fn until_end(&mut self, echo: bool) -> io::Result<()> {
        loop {
            let bytes = std::mem::take(&mut self.unread);
            if echo && !bytes.is_empty() {
                self.write(&bytes).await?;
            }
            match self.fill().await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.shared.update(self.number, |connection| connection.caller_closed = true);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives some bytes; an end is `UnexpectedEof`.
    async fn fill(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        let read = self.stream.io()?.read(&mut buffer).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&buffer[..read]);
        self.shared.update(self.number, |connection| connection.receive(&buffer[..read]));
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let io = self.stream.io()?;
        io.write_all(bytes).await?;
        io.flush().await?;
        self.shared.update(self.number, |connection| connection.bytes_out += bytes.len() as u64);
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stream.io()?.shutdown().await?;
        self.drain().await
    }

    async fn abandon(&mut self) -> io::Result<()> {
        let tcp = match &mut self.stream {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.get_mut().0,
            Stream::Closed => return Ok(()),
        };
        tcp.shutdown().await?;
        self.drain().await
    }

    /// Closing a socket with unread bytes sends RST, which may overtake sent bytes: read until the
    /// caller closes.
    async fn drain(&mut self) -> io::Result<()> {
        self.until_end(false).await
    }

    fn reset(&mut self) -> io::Result<()> {
        let stream = std::mem::replace(&mut self.stream, Stream::Closed);
        match &stream {
            Stream::Plain(tcp) => tcp.set_zero_linger(),
            Stream::Tls(tls) => tls.get_ref().0.set_zero_linger(),
            Stream::Closed => Ok(()),
        }
    }
}

// === impl Stream ===

impl Stream {
    fn io(&mut self) -> io::Result<&mut dyn Io> {
        match self {
            Self::Plain(tcp) => Ok(tcp),
            Self::Tls(tls) => Ok(tls),
            Self::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}
