//! The sockets to which a stream can be joined.

use std::io;
use std::time::Duration;

use net::large_reads::LargeReads;
use net::words;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use net::prefixed::Prefixed;

/// A socket that can be ended so that its peer sees a reset and not an end of file.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ends the socket with a TCP RST (`SO_LINGER` of zero). A Unix socket, which has no RST, is
    /// closed, with unread input if there is any. With TLS, the TCP connection below is reset
    /// without a `close_notify`.
    fn abort(self);

    /// An error between reads and writes: the peer's reset.
    fn error(&self) -> Option<io::Error> {
        None
    }

    /// Whether the peer has closed for good, not for writing only. Asked of a socket that is not
    /// being read. Where this is unknown, as with TCP, whose keepalive probes find it out, the
    /// answer is no.
    fn is_gone(&self) -> bool {
        false
    }
}

/// Implements the methods of [`Socket`] with those of the field `$io`. A macro, because `abort`
/// takes `self` by value.
#[macro_export]
macro_rules! forward_socket {
    ($io:ident) => {
        fn abort(self) {
            self.$io.abort();
        }

        fn error(&self) -> Option<::std::io::Error> {
            self.$io.error()
        }

        fn is_gone(&self) -> bool {
            self.$io.is_gone()
        }
    };
}

impl Socket for TcpStream {
    fn abort(self) {
        reset(&self);
    }

    fn error(&self) -> Option<io::Error> {
        self.take_error().ok().flatten()
    }
}

impl Socket for UnixStream {
    fn abort(self) {}

    fn error(&self) -> Option<io::Error> {
        self.take_error().ok().flatten()
    }

    /// Sending nothing fails once the peer has closed, but not when it has only ended its own
    /// direction (`unix_stream_sendmsg` in `net/unix/af_unix.c`).
    fn is_gone(&self) -> bool {
        SockRef::from(self).send(&[]).is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl Socket for tokio_rustls::server::TlsStream<LargeReads<TcpStream>> {
    fn abort(self) {
        reset(self.get_ref().0.get_ref());
    }

    fn error(&self) -> Option<io::Error> {
        self.get_ref().0.get_ref().error()
    }
}

impl<S: Socket> Socket for Prefixed<S> {
    crate::forward_socket!(io);
}

/// The RST is sent when the socket is dropped. Bytes written and not yet sent are lost.
fn reset(socket: &TcpStream) {
    if let Err(error) = SockRef::from(socket).set_linger(Some(Duration::ZERO)) {
        tracing::debug!(error = words::io(&error), "cannot set a socket to reset");
    }
}
