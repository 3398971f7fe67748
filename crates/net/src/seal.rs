//! Encrypts bytes before they are written.
//!
//! A TLS stream encrypts and writes in one call, so several records in one write need a buffer for
//! their plain bytes, and a copy into it. Encryption copies them anyway: bytes that are encrypted
//! as they come need no other copy.

use std::io::{self, IoSlice, Write as _};
use std::ops::DerefMut;

use rustls::ConnectionCommon;
use tokio::io::DuplexStream;
use tokio_rustls::{client, server};

use crate::transport::Transport;

/// The longest plain text of one record, in bytes (RFC 8446 §5.1).
pub const RECORD: usize = 16 * 1024;
/// Most encrypted bytes that a TLS library may hold unwritten. Sealing stays far below it: with
/// rustls's own 64 KiB, the fourth of four full records would be shortened by the record headers of
/// the others.
const MOST: usize = 128 * 1024;

/// A stream that may encrypt bytes before it writes them.
pub trait Seal {
    /// Encrypts the beginning of `parts`, in order, for the next flush or write to send. Returns
    /// how many bytes; 0 for a stream that does not encrypt. Fails like a write.
    fn seal(&mut self, _parts: [&[u8]; 2]) -> io::Result<usize> {
        Ok(0)
    }
}

fn encrypt<Data>(session: &mut impl DerefMut<Target = ConnectionCommon<Data>>, parts: [&[u8]; 2]) -> io::Result<usize> {
    session.set_buffer_limit(Some(MOST));
    session.writer().write_vectored(&parts.map(IoSlice::new))
}

impl<T> Seal for client::TlsStream<T> {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        encrypt(self.get_mut().1, parts)
    }
}

impl<T> Seal for server::TlsStream<T> {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        encrypt(self.get_mut().1, parts)
    }
}

impl Seal for Transport {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        match self {
            Self::Tls(stream) => stream.seal(parts),
            Self::ProxiedTls(stream) => stream.seal(parts),
            Self::Plain(_) | Self::Proxied(_) => Ok(0),
        }
    }
}

/// In memory, where nothing is secret.
impl Seal for DuplexStream {}
