//! An admin endpoint as curl sees it.

use std::io;
use std::net::SocketAddr;

use kit::client::Client;

/// Status and body of `GET path`.
pub async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let answer = Client::plain(address).h1().await?.call("GET", path, &[("Connection", "close")], b"").await;
    let (head, body) = answer.map_err(io::Error::other)?;
    Ok((head.status, String::from_utf8(body.to_vec()).map_err(io::Error::other)?))
}
