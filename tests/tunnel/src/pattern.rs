//! Bytes that show where in a stream they belong, so that a lost, doubled or swapped piece is seen.

use std::io;
use std::sync::LazyLock;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// A prime, so that no power of two that buffers are made of hides a shift.
const PERIOD: usize = 251;
/// Bytes written or read at once.
const PIECE: usize = 64 << 10;

static PATTERN: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..PIECE + PERIOD).map(|at| u8::try_from(at % PERIOD).expect("below 251")).collect());

/// Up to 64 KiB of the pattern as it is `offset` bytes from its start.
pub fn at(offset: u64, longest: usize) -> &'static [u8] {
    let from = usize::try_from(offset % PERIOD as u64).expect("below 251");
    &PATTERN[from..from + longest.min(PIECE)]
}

/// Writes the pattern's first `total` bytes, and flushes.
pub async fn write<W: AsyncWrite + Unpin + ?Sized>(io: &mut W, total: u64) -> io::Result<()> {
    let mut sent = 0;
    while sent < total {
        let longest = usize::try_from(total - sent).unwrap_or(PIECE);
        let written = io.write(at(sent, longest)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        sent += written as u64;
    }
    io.flush().await
}

/// Reads exactly `total` bytes and checks each.
pub async fn read<R: AsyncRead + Unpin + ?Sized>(io: &mut R, total: u64) -> io::Result<()> {
    let mut check = Check::default();
    let mut buffer = vec![0; PIECE];
    while check.0 < total {
        let longest = usize::try_from(total - check.0).unwrap_or(PIECE).min(PIECE);
        match io.read(&mut buffer[..longest]).await? {
            0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{} of {total} bytes", check.0))),
            read => check.take(&buffer[..read])?,
        }
    }
    Ok(())
}

/// Reads to the end of file, checks each byte, and returns how many there were.
pub async fn read_to_end<R: AsyncRead + Unpin + ?Sized>(io: &mut R) -> io::Result<u64> {
    let mut check = Check::default();
    let mut buffer = vec![0; PIECE];
    loop {
        match io.read(&mut buffer).await? {
            0 => return Ok(check.0),
            read => check.take(&buffer[..read])?,
        }
    }
}

/// Checks a stream piece by piece.
#[derive(Debug, Default)]
pub struct Check(u64);

// === impl Check ===

impl Check {
    /// Checks the next piece.
    pub fn take(&mut self, data: &[u8]) -> io::Result<()> {
        for piece in data.chunks(PIECE) {
            if piece != at(self.0, piece.len()) {
                let text = format!("other bytes than were sent, after {}", self.0);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            self.0 += piece.len() as u64;
        }
        Ok(())
    }
}
