//! An admin endpoint as curl sees it.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Status and body of `GET path`.
pub async fn get(address: SocketAddr, path: &str) -> std::io::Result<(u16, String)> {
    ask(address, "GET", path, "*/*").await
}

/// Status and body of a request without a body, accepting `accept`.
pub async fn ask(address: SocketAddr, method: &str, path: &str, accept: &str) -> std::io::Result<(u16, String)> {
    let mut socket = TcpStream::connect(address).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status =
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
    Ok((status, body.to_owned()))
}
