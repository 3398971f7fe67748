//! The upstream of upgrades: HTTP/1.1 over TLS. Each upgrade request becomes an echo, all others
//! are answered with 200.

use std::io;
use std::time::Duration;

use anyhow::Result;
use kit::pki;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::stand_in::Options;

const HANDSHAKE_LIMIT: Duration = Duration::from_secs(20);
/// Longer heads are not sent here.
const LONGEST_HEAD: usize = 64 << 10;
const BUFFER: usize = 64 << 10;

/// Serves until the process is ended.
pub fn run(options: &Options) -> Result<()> {
    let acceptor = TlsAcceptor::from(options.tls(pki::ALPN_H1)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.address).await?;
        loop {
            let (tcp, _) = listener.accept().await?;
            tokio::spawn(connection(tcp, acceptor.clone()));
        }
    })
}

/// Its end is the client's matter.
async fn connection(tcp: TcpStream, acceptor: TlsAcceptor) {
    let _ = tcp.set_nodelay(true); // fails only on a socket that is gone
    if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, acceptor.accept(tcp)).await {
        drop(serve(stream).await);
    }
}

async fn serve<IO: AsyncRead + AsyncWrite + Unpin>(mut io: IO) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    while let Some(head) = head(&mut io).await? {
        let Some(protocol) = field(&head, "upgrade") else {
            io.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await?;
            io.flush().await?;
            continue;
        };
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n");
        io.write_all(answer.as_bytes()).await?;
        loop {
            io.flush().await?;
            let read = io.read(&mut buffer).await?;
            if read == 0 {
                return io.shutdown().await;
            }
            io.write_all(&buffer[..read]).await?;
        }
    }
    Ok(())
}

/// Up to and with the empty line, byte by byte, so that nothing behind it is taken; none at the
/// connection's end.
pub async fn head<IO: AsyncRead + Unpin>(io: &mut IO) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LONGEST_HEAD {
            return Err(io::Error::other("the head does not end"));
        }
        match io.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && head.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
