//! The client of an upgraded connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kit::pki::ALPN_H1;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{EXEC, server};
use crate::route::Route;

/// Limit for the connection and the 101.
const START_LIMIT: Duration = Duration::from_secs(20);
/// For one echo, and for the rest of the bytes after the last write: what takes longer is lost.
const ECHO_LIMIT: Duration = Duration::from_secs(20);
/// A keystroke or a line of output, framed.
const MESSAGE: usize = 64;
const CHUNK: usize = 32 << 10; // client-go's largest write

/// One upgraded connection.
pub struct Upgraded(TlsStream<TcpStream>);

// === impl Upgraded ===

impl Upgraded {
    /// Asks for an exec over `route` and waits for the 101.
    pub async fn open(route: &Route) -> Result<Self> {
        timeout(START_LIMIT, Self::upgrade(route)).await.context("no 101 in time")?
    }

    async fn upgrade(route: &Route) -> Result<Self> {
        let tcp = TcpStream::connect(route.address).await?;
        tcp.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::clone(&route.tls(None, ALPN_H1)));
        let mut tls = connector.connect(ServerName::try_from("localhost")?, tcp).await?;
        let headers = route.headers.iter().flat_map(|line| [line, "\r\n"]).collect::<String>();
        let request = format!(
            "POST {}{EXEC} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
             X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n",
            route.prefix, route.address
        );
        tls.write_all(request.as_bytes()).await?;
        tls.flush().await?;
        let head = server::head(&mut tls).await?.context("closed without an answer")?;
        ensure!(head.starts_with("HTTP/1.1 101 "), "not upgraded: {}", head.lines().next().unwrap_or_default());
        Ok(Self(tls))
    }

    /// Echoes one message after the other until `deadline`, at least one; how long each took.
    pub async fn echo_until(&mut self, deadline: Instant) -> Result<Vec<Duration>> {
        let (sent, mut returned) = ([b'x'; MESSAGE], [0; MESSAGE]);
        let mut taken = Vec::new();
        while taken.is_empty() || Instant::now() < deadline {
            let start = Instant::now();
            self.0.write_all(&sent).await?;
            self.0.flush().await?;
            timeout(ECHO_LIMIT, self.0.read_exact(&mut returned)).await.context("an echo did not come")??;
            taken.push(start.elapsed());
        }
        Ok(taken)
    }

    /// Writes until `deadline` while it reads the echo; returns the number of bytes that came back.
    /// Closes only after that: proxies that do as Kubernetes does end both directions when one has
    /// ended, and lose the bytes in flight.
    pub async fn stream_until(self, deadline: Instant) -> Result<usize> {
        let (reader, mut writer) = split(self.0);
        let (told, total) = oneshot::channel();
        let write = async {
            let written = write_until(&mut writer, deadline).await?;
            let _ = told.send(written); // the reader may have failed, and says why
            Ok(written)
        };
        let (written, read) = tokio::join!(write, read_all(reader, total));
        let (written, read): (io::Result<usize>, _) = (written, read?);
        let written = written?;
        ensure!(written == read, "{written} bytes were written, {read} came back");
        writer.shutdown().await?;
        Ok(read)
    }
}

async fn write_until(writer: &mut WriteHalf<TlsStream<TcpStream>>, deadline: Instant) -> io::Result<usize> {
    let chunk = vec![b'x'; CHUNK];
    let mut written = 0;
    while Instant::now() < deadline {
        writer.write_all(&chunk).await?;
        written += chunk.len();
    }
    writer.flush().await?;
    Ok(written)
}

/// Reads until the end, or until as many bytes as `total` gives.
async fn read_all(mut reader: ReadHalf<TlsStream<TcpStream>>, mut total: oneshot::Receiver<usize>) -> Result<usize> {
    let mut buffer = vec![0; CHUNK];
    let (mut read, mut expected) = (0, None);
    while expected != Some(read) {
        let bytes = tokio::select! {
            told = &mut total, if expected.is_none() => {
                expected = Some(told.context("nothing more was written")?);
                continue;
            }
            bytes = timeout(ECHO_LIMIT, reader.read(&mut buffer)) => bytes.context("the rest did not come")??,
        };
        if bytes == 0 {
            break;
        }
        read += bytes;
    }
    Ok(read)
}
