//! SOCKS5 (RFC 1928) with user and password (RFC 1929). Names go to the proxy unresolved, as with
//! `socks5` in Go.
//!
//! The length of every message is known before it is read, so no bytes of the destination are
//! consumed.

use std::net::{Ipv4Addr, Ipv6Addr};

use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::error::SocksReply;
use super::{Credentials, Refusal};
use crate::dial::HostPort;

const VERSION: u8 = 5;
/// Version of the negotiation of RFC 1929.
const PASSWORD_VERSION: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const SUCCEEDED: u8 = 0;

/// Asks for `destination`. Afterwards the stream is the destination's.
pub(super) async fn connect<S>(
    stream: &mut S,
    destination: HostPort<'_>,
    credentials: Option<&Credentials>,
) -> Result<(), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = request(destination)?;
    greet(stream, credentials).await?;
    send(stream, &request).await?;
    let [version, reply, _, kind] = receive(stream).await?;
    if version != VERSION {
        return Err(malformed("version"));
    }
    if reply != SUCCEEDED {
        return Err(Refusal::Socks(SocksReply(reply)));
    }
    // The address from which the proxy connects: unused, but it must be read.
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(receive::<1, _>(stream).await?[0]),
        _ => return Err(malformed("type of address")),
    };
    let mut bound = [0; 255 + 2];
    stream.read_exact(&mut bound[..length + 2]).await?;
    Ok(())
}

/// Agrees on a method and authenticates.
async fn greet<S>(stream: &mut S, credentials: Option<&Credentials>) -> Result<(), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let methods: &[u8] = match credentials {
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, PASSWORD],
        None => &[VERSION, 1, NO_AUTHENTICATION],
    };
    send(stream, methods).await?;
    let [version, method] = receive(stream).await?;
    match (version, method, credentials) {
        (VERSION, NO_AUTHENTICATION, _) => Ok(()),
        (VERSION, PASSWORD, Some(credentials)) => authenticate(stream, credentials).await,
        (VERSION, NONE_ACCEPTABLE, None) => Err(Refusal::CredentialsWanted),
        (VERSION, NONE_ACCEPTABLE, Some(_)) => Err(malformed("it accepts no password")),
        (VERSION, ..) => Err(malformed("a method that was not offered")),
        _ => Err(malformed("version")),
    }
}

async fn authenticate<S>(stream: &mut S, credentials: &Credentials) -> Result<(), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut message = vec![PASSWORD_VERSION];
    for part in [credentials.user.as_str(), credentials.password.expose_secret()] {
        // Credentials too long to be sent cannot be correct.
        message.push(u8::try_from(part.len()).map_err(|_| Refusal::CredentialsRefused)?);
        message.extend_from_slice(part.as_bytes());
    }
    send(stream, &message).await?;
    // The version in this answer is wrong in several servers.
    let [_, status] = receive(stream).await?;
    if status == SUCCEEDED { Ok(()) } else { Err(Refusal::CredentialsRefused) }
}

fn request(destination: HostPort<'_>) -> Result<Vec<u8>, Refusal> {
    let mut message = vec![VERSION, CONNECT, 0];
    if let Ok(address) = destination.host.parse::<Ipv4Addr>() {
        message.push(IPV4);
        message.extend(address.octets());
    } else if let Ok(address) = destination.host.parse::<Ipv6Addr>() {
        message.push(IPV6);
        message.extend(address.octets());
    } else {
        let length =
            u8::try_from(destination.host.len()).map_err(|_| malformed("the destination's name is too long"))?;
        message.extend([NAME, length]);
        message.extend(destination.host.as_bytes());
    }
    message.extend(destination.port.to_be_bytes());
    Ok(message)
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, message: &[u8]) -> Result<(), Refusal> {
    stream.write_all(message).await?;
    Ok(stream.flush().await?)
}

async fn receive<const LENGTH: usize, S: AsyncRead + Unpin>(stream: &mut S) -> Result<[u8; LENGTH], Refusal> {
    let mut message = [0; LENGTH];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

fn malformed(what: &'static str) -> Refusal {
    Refusal::Malformed { protocol: "SOCKS5", what }
}

#[cfg(test)]
mod tests;
