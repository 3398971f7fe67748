//! The destination of tunnels: a server that echoes, sends or swallows, as the caller asks. A
//! process of its own (this binary again), so that its work does not count as a tunnel's.
//!
//! A connection carries commands, one after the other: `e`, after which everything comes back; `s`
//! and eight bytes of a big-endian number, after which so many bytes come; `k` and a number, after
//! which so many bytes are swallowed and one comes back. It never speaks first.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hub_tests::process::Process;
use hub_tests::{ports, wait};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// The argument of the command line that is this server.
pub const COMMAND: &str = "tunnel-destination";
pub const ECHO: u8 = b'e';
pub const SEND: u8 = b's';
pub const SWALLOW: u8 = b'k';

/// Bytes written or read at once.
const PIECE: usize = 256 << 10;
/// Connections that may wait to be accepted: more than any scenario opens at a time.
const BACKLOG: u32 = 4096;
const LIMIT: Duration = Duration::from_secs(20);

/// The running server.
pub struct Destination {
    pub address: SocketAddr,
    pub process: Process,
}

// === impl Destination ===

impl Destination {
    pub fn start(directory: &Path) -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()?));
        let program = std::env::current_exe()?;
        let process = Process::start(COMMAND, &program, [COMMAND, &address.to_string()], directory)?;
        let answers = || std::net::TcpStream::connect(address).map(drop).context("it does not listen");
        wait::until("the tunnels' destination", LIMIT, answers)?;
        Ok(Self { address, process })
    }
}

/// Serves at `address` until the process is ended.
pub fn serve(address: SocketAddr) -> Result<()> {
    net::process::raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        accept(socket.listen(BACKLOG)?).await
    })
}

async fn accept(listener: TcpListener) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let _ = obey(stream).await; // callers may go at any time
        });
    }
}

async fn obey(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        match stream.read_u8().await? {
            ECHO => return echo(stream).await,
            SEND => send(&mut stream).await?,
            SWALLOW => swallow(&mut stream).await?,
            _ => return Ok(()),
        }
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    // Small: ten thousand of them are open at a time.
    let mut buffer = [0; 512];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..read]).await?;
    }
}

async fn send(stream: &mut TcpStream) -> io::Result<()> {
    let mut left = stream.read_u64().await?;
    let piece = vec![7; PIECE];
    while left > 0 {
        let now = left.min(PIECE as u64);
        stream.write_all(&piece[..usize::try_from(now).unwrap_or(PIECE)]).await?;
        left -= now;
    }
    Ok(())
}

async fn swallow(stream: &mut TcpStream) -> io::Result<()> {
    let mut left = stream.read_u64().await?;
    let mut piece = vec![0; PIECE];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let read = stream.read(&mut piece[..most]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= read as u64;
    }
    stream.write_u8(0).await
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn one_connection_takes_several_commands() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(accept(listener));
        let mut stream = TcpStream::connect(address).await.unwrap();

        stream.write_u8(SEND).await.unwrap();
        stream.write_u64(PIECE as u64 + 1).await.unwrap();
        let mut received = vec![0; PIECE + 1];
        stream.read_exact(&mut received).await.unwrap();

        stream.write_u8(SWALLOW).await.unwrap();
        stream.write_u64(3).await.unwrap();
        stream.write_all(b"abc").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 0);

        stream.write_all(b"eabc").await.unwrap();
        let mut echoed = [0; 3];
        stream.read_exact(&mut echoed).await.unwrap();
        assert_eq!(&echoed, b"abc");
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut echoed).await.unwrap(), 0);
    }
}
