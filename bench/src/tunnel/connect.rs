//! HTTP/1.1 CONNECT as kube-apiserver writes it.

use std::io;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Longest head of an answer.
const HEAD: usize = 4096;

/// Asks for a stream to `authority` and waits until it is open. Bytes that come with the answer are
/// an error, as they are to kube-apiserver.
pub async fn connect(io: &mut (impl AsyncRead + AsyncWrite + Unpin), authority: &str) -> Result<()> {
    let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    io.write_all(head.as_bytes()).await?;
    let mut buffer = [0; HEAD];
    let mut filled = 0;
    let end = loop {
        let read = io.read(&mut buffer[filled..]).await?;
        ensure!(read > 0, io::Error::from(io::ErrorKind::UnexpectedEof));
        filled += read;
        if let Some(at) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
    };
    judge(&buffer[..filled])?;
    ensure!(end == filled, "{} bytes came together with the answer to CONNECT", filled - end);
    Ok(())
}

fn judge(answer: &[u8]) -> Result<()> {
    let line = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match status.with_context(|| format!("no status in {line:?}"))? {
        "200" => Ok(()),
        _ => bail!("CONNECT was answered {line:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(answer: &str) -> Result<()> {
        let (mut near, mut far) = tokio::io::duplex(HEAD);
        far.write_all(answer.as_bytes()).await.unwrap();
        let outcome = connect(&mut near, "127.0.0.1:1").await;
        drop(near);
        let mut asked = String::new();
        far.read_to_string(&mut asked).await.unwrap();
        assert_eq!(asked, "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        outcome
    }

    #[tokio::test]
    async fn only_a_200_by_itself_is_a_stream() {
        answered("HTTP/1.1 200 Connection Established\r\n\r\n").await.unwrap();
        answered("HTTP/1.0 200 OK\r\nDate: now\r\n\r\n").await.unwrap();
        for bad in ["HTTP/1.1 502 Bad Gateway\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nearly", "SSH-2.0-x\r\n\r\n"] {
            assert!(answered(bad).await.is_err(), "{bad:?}");
        }
    }
}
