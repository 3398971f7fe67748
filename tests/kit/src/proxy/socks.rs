//! The server's side of SOCKS5 (RFC 1928, RFC 1929).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Request;

/// The answer to a request that is carried out.
pub(super) fn granted() -> Vec<u8> {
    vec![5, 0, 0, 1, 127, 0, 0, 1, 0, 80]
}

/// The answer when the destination refuses.
pub(super) fn refused() -> Vec<u8> {
    vec![5, 5, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// Greets the client and reads its request; `accepts` judges its credentials.
pub(super) async fn request<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    wants_credentials: bool,
    accepts: impl Fn(Option<&(String, String)>) -> bool,
) -> io::Result<Request> {
    let methods = {
        expect(stream, 5).await?;
        counted(stream).await?
    };
    let method = if wants_credentials { 2 } else { 0 };
    if !methods.contains(&method) {
        stream.write_all(&[5, 0xff]).await?;
        return Err(io::Error::other("no method in common"));
    }
    stream.write_all(&[5, method]).await?;
    let credentials = if wants_credentials { Some(credentials(stream).await?) } else { None };
    if credentials.is_some() {
        let status = u8::from(!accepts(credentials.as_ref()));
        stream.write_all(&[1, status]).await?;
    }
    for byte in [5, 1, 0] {
        expect(stream, byte).await?;
    }
    let host = host(stream).await?;
    let port = stream.read_u16().await?;
    Ok(Request { destination: format!("{host}:{port}"), credentials })
}

async fn credentials<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<(String, String)> {
    expect(stream, 1).await?;
    Ok((text(counted(stream).await?)?, text(counted(stream).await?)?))
}

async fn host<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<String> {
    match stream.read_u8().await? {
        1 => Ok(Ipv4Addr::from(stream.read_u32().await?).to_string()),
        3 => text(counted(stream).await?),
        4 => Ok(format!("[{}]", Ipv6Addr::from(stream.read_u128().await?))),
        other => Err(io::Error::other(format!("address type {other}"))),
    }
}

async fn expect<S: AsyncRead + Unpin>(stream: &mut S, byte: u8) -> io::Result<()> {
    let got = stream.read_u8().await?;
    if got == byte { Ok(()) } else { Err(io::Error::other(format!("{got} in place of {byte}"))) }
}

async fn counted<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(io::Error::other)
}
