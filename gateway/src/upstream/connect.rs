//! Opening a connection to a member: directly, by a proxy or through the tunnel, then TLS and ALPN,
//! within one deadline.

mod error;

use std::io;
use std::time::Duration;

use http::HeaderValue;
use http::uri::{Authority, Scheme};
use net::dial::{self, DialError};
use net::proxy::{Opened, Proxy};
use net::tls;
use net::transport::Transport;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use traces::{Span, Trace};

pub use self::error::ConnectError;
use super::addresses::{MemberAddress, MemberAddresses};
use super::circuit::Circuit;
use super::shed::Held;
use crate::holding::{Backlog, MemberAccounts};
use crate::spans;
use crate::tunnel::TunnelDialer;

/// Where a member is and how it proves who it is.
pub struct Target {
    pub scheme: Scheme,
    /// The first address's, for all of them: API servers do not look at it.
    pub authority: Authority,
    /// `authority` again, as the `Host` header of HTTP/1.1.
    pub host_header: HeaderValue,
    pub addresses: MemberAddresses,
    /// To all addresses.
    pub dialer: Dialer,
    /// For proxy, TCP and TLS together, and for all addresses.
    pub dial_timeout: Duration,
    /// Dials at a time, upgrades' included.
    pub dials: Semaphore,
    pub circuit: Circuit,
    /// For what connections hold by themselves.
    pub accounts: MemberAccounts,
    /// The cluster is registered no more: all connections end, with whatever is on them.
    pub ended: CancellationToken,
}

/// How the byte stream is opened that TLS runs in. Nothing else knows of it.
pub enum Dialer {
    Direct,
    Proxy(Proxy),
    Tunnel(TunnelDialer),
}

/// What [`Target::dials`] starts with: a member that answers takes more than this in the blink of
/// an eye, one that does not must not gather sockets.
pub const MAX_DIALS: usize = 64;

// === impl Target ===

impl Target {
    /// `host:port` for messages.
    pub fn address(&self) -> String {
        self.describe(self.addresses.preferred())
    }

    /// An address for messages. What is called the same inside every cluster is not taken for
    /// something nearby.
    fn describe(&self, address: &MemberAddress) -> String {
        let through = if matches!(self.dialer, Dialer::Tunnel(_)) { " through the tunnel" } else { "" };
        format!("{address}{through}")
    }

    /// For a connection that is used on `core`.
    pub fn held(&self, core: usize) -> Held {
        let account = self.accounts.open(core);
        let backlog = matches!(self.dialer, Dialer::Tunnel(_)).then(|| Backlog::new(&account));
        Held { account, backlog }
    }

    /// For pooled requests: the member chooses between HTTP/2 and HTTP/1.1.
    pub async fn connect_any(&self, held: &Held, trace: Option<&Trace>) -> Result<Transport, ConnectError> {
        self.connect(&[tls::H2, tls::HTTP_11], held, trace).await
    }

    /// For upgrades: HTTP/1.1 and nothing else, since HTTP/2 cannot carry them (RFC 9113 §8.6).
    pub async fn connect_http1(&self, held: &Held, trace: Option<&Trace>) -> Result<Transport, ConnectError> {
        let transport = self.connect(&[tls::HTTP_11], held, trace).await?;
        if transport.alpn() == Some(tls::H2) {
            return Err(ConnectError::NoHttp1 { address: self.address() });
        }
        Ok(transport)
    }

    /// Of a dial, under `trace`.
    pub fn span(&self, trace: Option<&Trace>) -> Option<Span> {
        spans::dial(trace, &self.authority, self.dialer.word())
    }

    /// Of waiting for a dial that another request began.
    pub fn shared_span(&self, trace: Option<&Trace>) -> Option<Span> {
        spans::shared_dial(trace, &self.authority, self.dialer.word())
    }

    async fn connect(&self, alpn: &[&[u8]], held: &Held, trace: Option<&Trace>) -> Result<Transport, ConnectError> {
        let attempt = self.circuit.attempt()?;
        let deadline = Instant::now() + self.dial_timeout;
        let Ok(_dialling) = timeout_at(deadline, self.dials.acquire()).await else {
            return Err(DialError::Timeout { address: self.address() }.into());
        };
        let outcome = tokio::select! {
            biased;
            // A connection made for it would be closed at once, and dialled again.
            () = self.ended.cancelled() => Err(ConnectError::Unregistered { address: self.address() }),
            outcome = self.connect_somewhere(alpn, held, deadline, trace) => outcome,
        };
        match &outcome {
            Ok(_) => attempt.succeeded(),
            // It is there, but not for upgrades: no reason to keep other requests from it.
            Err(error) if error.is_for_upgrades_only() => attempt.succeeded(),
            Err(error) if !error.is_of_the_member() => drop(attempt),
            Err(error) => attempt.failed(error),
        }
        outcome
    }

    /// The first address that answers, in order of preference. What is left of the time is divided
    /// evenly among the addresses that are left.
    async fn connect_somewhere(
        &self,
        alpn: &[&[u8]],
        held: &Held,
        deadline: Instant,
        trace: Option<&Trace>,
    ) -> Result<Transport, ConnectError> {
        let mut failures = Vec::new();
        let mut addresses = self.addresses.in_order();
        while let Some((index, address)) = addresses.next() {
            let now = Instant::now();
            let left = u32::try_from(addresses.len()).unwrap_or(u32::MAX).saturating_add(1);
            let share = now + deadline.saturating_duration_since(now) / left;
            match self.connect_to(address, alpn, held, share, trace).await {
                Ok(transport) => {
                    self.addresses.prefer(index);
                    return Ok(transport);
                }
                Err(error) => failures.push(error),
            }
        }
        Err(ConnectError::all_of(failures))
    }

    async fn connect_to(
        &self,
        address: &MemberAddress,
        alpn: &[&[u8]],
        held: &Held,
        deadline: Instant,
        trace: Option<&Trace>,
    ) -> Result<Transport, ConnectError> {
        let opened = match &self.dialer {
            Dialer::Direct => Opened::Tcp(dial::connect(&address.host, address.port, deadline).await?),
            // Rare, and larger than a direct dial.
            Dialer::Proxy(proxy) => Box::pin(proxy.connect(&address.host, address.port, deadline)).await?,
            Dialer::Tunnel(through) => {
                let failed = |source| ConnectError::Tunnel { address: self.describe(address), source };
                Box::pin(through.open(held.backlog.as_ref(), deadline, trace)).await.map_err(failed)?
            }
        };
        let Some((config, name)) = &address.tls else {
            return Ok(opened.plain());
        };
        match timeout_at(deadline, opened.secure(config, name.clone(), alpn)).await {
            Ok(Ok(transport)) => Ok(transport),
            Ok(Err(source)) if !alpn.contains(&tls::H2) && is_no_protocol(&source) => {
                Err(ConnectError::NoHttp1 { address: self.describe(address) })
            }
            Ok(Err(source)) => {
                Err(ConnectError::Tls { address: self.describe(address), source, advice: address.advice })
            }
            Err(_) => Err(ConnectError::TlsTimeout { address: self.describe(address), after: self.dial_timeout }),
        }
    }
}

// === impl Dialer ===

impl Dialer {
    /// A word for spans.
    fn word(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Proxy(_) => "proxy",
            Self::Tunnel(_) => "tunnel",
        }
    }
}

/// Whether the peer speaks none of the protocols offered to it (RFC 7301 §3.2).
fn is_no_protocol(error: &io::Error) -> bool {
    let alert = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(alert, Some(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)))
}

#[cfg(test)]
impl Target {
    /// `https://member.example:6443`, never to be dialled.
    pub fn sample() -> Self {
        let authority = "member.example:6443";
        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = crate::metrics::Metrics::register(&mut registry).for_cluster("c1".into(), None);
        Self {
            scheme: Scheme::HTTPS,
            authority: Authority::from_static(authority),
            host_header: HeaderValue::from_static(authority),
            addresses: MemberAddresses::new(
                MemberAddress { host: "member.example".into(), port: 6443, tls: None, advice: "" },
                [],
            ),
            dialer: Dialer::Direct,
            dial_timeout: Duration::from_secs(10),
            dials: Semaphore::new(1),
            circuit: Circuit::new(0, metrics.circuit()),
            accounts: MemberAccounts::new(
                crate::holding::Budget::new(1 << 40),
                api::cluster_name::ClusterName::parse("c1").unwrap(),
            ),
            ended: CancellationToken::new(),
        }
    }
}

#[cfg(test)]
mod tests;
