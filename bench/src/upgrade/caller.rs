//! The client of an upgraded connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kit::pki::ALPN_H1;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{EXEC, server};
use crate::way::Way;

/// For the connection and the 101.
const START_LIMIT: Duration = Duration::from_secs(20);
/// For one echo, and for the rest of the bytes after the last was written: whoever takes longer has lost them.
const ECHO_LIMIT: Duration = Duration::from_secs(20);
/// A keystroke or a line of output, framed.
const MESSAGE: usize = 64;
const CHUNK: usize = 32 << 10; // what client-go writes at most at once

/// One upgraded connection.
pub struct Upgraded(TlsStream<TcpStream>);

// === impl Upgraded ===

impl Upgraded {
    /// Asks for an exec over `way` and waits for the 101.
    pub async fn open(way: &Way) -> Result<Self> {
        timeout(START_LIMIT, Self::upgrade(way)).await.context("no 101 in time")?
    }

    async fn upgrade(way: &Way) -> Result<Self> {
        let tcp = TcpStream::connect(way.address).await?;
        tcp.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::clone(&way.tls(None, ALPN_H1)));
        let mut tls = connector.connect(ServerName::try_from("localhost")?, tcp).await?;
        let headers = way.headers.iter().map(|line| format!("{line}\r\n")).collect::<String>();
        let request = format!(
            "POST {}{EXEC} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
             X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n",
            way.prefix, way.address
        );
        tls.write_all(request.as_bytes()).await?;
        tls.flush().await?;
        let head = server::head(&mut tls).await?.context("closed without an answer")?;
        ensure!(head.starts_with("HTTP/1.1 101 "), "not upgraded: {}", head.lines().next().unwrap_or_default());
        Ok(Self(tls))
    }

    /// Echoes one message after the other until `deadline`; how long each took.
    pub async fn echo_until(&mut self, deadline: Instant) -> Result<Vec<Duration>> {
        let (sent, mut returned) = ([b'x'; MESSAGE], [0; MESSAGE]);
        let mut taken = Vec::new();
        while Instant::now() < deadline {
            let start = Instant::now();
            self.0.write_all(&sent).await?;
            self.0.flush().await?;
            timeout(ECHO_LIMIT, self.0.read_exact(&mut returned)).await.context("an echo did not come")??;
            taken.push(start.elapsed());
        }
        ensure!(!taken.is_empty(), "no time for an echo");
        Ok(taken)
    }

    /// Writes until `deadline` while the echo is read; how many bytes came back.
    pub async fn stream_until(self, deadline: Instant) -> Result<usize> {
        let (reader, writer) = split(self.0);
        let (written, read) = tokio::join!(write_until(writer, deadline), read_all(reader));
        let (written, read) = (written?, read?);
        ensure!(written == read, "{written} bytes were written, {read} came back");
        Ok(read)
    }
}

async fn write_until(mut writer: WriteHalf<TlsStream<TcpStream>>, deadline: Instant) -> io::Result<usize> {
    let chunk = vec![b'x'; CHUNK];
    let mut written = 0;
    while Instant::now() < deadline {
        writer.write_all(&chunk).await?;
        written += chunk.len();
    }
    writer.shutdown().await?;
    Ok(written)
}

async fn read_all(mut reader: ReadHalf<TlsStream<TcpStream>>) -> Result<usize> {
    let (mut buffer, mut total) = (vec![0; CHUNK], 0);
    loop {
        match timeout(ECHO_LIMIT, reader.read(&mut buffer)).await.context("the echo does not end")? {
            Ok(0) => return Ok(total),
            Ok(read) => total += read,
            // A proxy that closes without TLS's word for it has lost nothing: the bytes are counted.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(total),
            Err(error) => return Err(error.into()),
        }
    }
}
