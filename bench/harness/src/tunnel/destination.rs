//! The far end: it follows commands of nine bytes, one after the other on each connection.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Moved by one call.
const PIECE: usize = 64 << 10;

pub struct Destination;

/// A command, which comes with a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Send them back when all are there.
    Echo = b'e' as isize,
    /// Send that many.
    Download = b'd' as isize,
    /// Take them, answer with one.
    Upload = b'u' as isize,
}

// === impl Destination ===

impl Destination {
    /// Serves for as long as the runtime runs; returns where.
    pub async fn start() -> Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket)); // it ends with the connection, however that ends
            }
        });
        Ok(address)
    }
}

async fn serve(mut socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    loop {
        let (wish, size) = (socket.read_u8().await?, socket.read_u64().await?);
        let (mut reader, mut writer) = socket.split();
        match wish {
            b'e' => {
                let mut word = vec![0; usize::try_from(size)?];
                reader.read_exact(&mut word).await?;
                writer.write_all(&word).await?;
            }
            b'd' => send(&mut writer, size).await?,
            _ => {
                take(&mut reader, size).await?;
                writer.write_u8(b'.').await?;
            }
        }
    }
}

/// Asks for one thing and takes the answer.
pub async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), wish: Wish, size: u64) -> Result<()> {
    let mut head = [0; 9];
    head[0] = wish as u8;
    head[1..].copy_from_slice(&size.to_be_bytes());
    match wish {
        Wish::Echo => {
            let words = [&head[..], &vec![b'1'; usize::try_from(size)?]].concat();
            stream.write_all(&words).await?;
            take(stream, size).await
        }
        Wish::Download => {
            stream.write_all(&head).await?;
            take(stream, size).await
        }
        Wish::Upload => {
            stream.write_all(&head).await?;
            send(stream, size).await?;
            take(stream, 1).await
        }
    }
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), size: u64) -> Result<()> {
    let piece = vec![b'1'; PIECE];
    let mut left = usize::try_from(size)?;
    while left > 0 {
        let next = left.min(PIECE);
        writer.write_all(&piece[..next]).await?;
        left -= next;
    }
    Ok(writer.flush().await?)
}

async fn take(reader: &mut (impl AsyncRead + Unpin), size: u64) -> Result<()> {
    let taken = tokio::io::copy(&mut reader.take(size), &mut tokio::io::sink()).await?;
    ensure!(taken == size, "closed after {taken} of {size} bytes");
    Ok(())
}
