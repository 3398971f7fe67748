//! Connects to a member: directly, by a proxy or through the tunnel, then TLS and ALPN, within one
//! deadline.

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
use super::shed::ConnectionBytes;
use crate::holding::{Backlog, MemberAccounts};
use crate::spans;
use crate::tunnel::TunnelDialer;

/// A member's addresses, and how to dial them.
pub struct Target {
    pub scheme: Scheme,
    /// The first address's, for all addresses: API servers ignore it.
    pub authority: Authority,
    /// `authority` again, as the `Host` header of HTTP/1.1.
    pub host_header: HeaderValue,
    pub addresses: MemberAddresses,
    /// How all addresses are dialled.
    pub dialer: Dialer,
    /// For proxy, TCP and TLS together, and for all addresses together.
    pub dial_timeout: Duration,
    /// Limit of concurrent dials, including those for upgrades.
    pub dials: Semaphore,
    pub circuit: Circuit,
    /// Counts what connections hold by themselves.
    pub accounts: MemberAccounts,
    /// Cancelled when the cluster is no longer registered: all connections end, with their
    /// requests.
    pub ended: CancellationToken,
}

/// How to open the byte stream below TLS. No layer above depends on it.
pub enum Dialer {
    Direct,
    Proxy(Proxy),
    Tunnel(TunnelDialer),
}

/// Permits of [`Target::dials`]: a member that answers finishes even more dials in no time, and one
/// that does not must not accumulate sockets.
pub const MAX_DIALS: usize = 64;

// === impl Target ===

impl Target {
    /// `host:port` for messages.
    pub fn address(&self) -> String {
        self.describe(self.addresses.preferred())
    }

    /// An address for messages. The tunnel is mentioned, because a name such as
    /// `kubernetes.default.svc` would otherwise look like a nearby one.
    fn describe(&self, address: &MemberAddress) -> String {
        let through = if matches!(self.dialer, Dialer::Tunnel(_)) { " through the tunnel" } else { "" };
        format!("{address}{through}")
    }

    /// What counts for a connection on `core`.
    pub fn held(&self, core: usize) -> ConnectionBytes {
        let account = self.accounts.open(core);
        let backlog = matches!(self.dialer, Dialer::Tunnel(_)).then(|| Backlog::new(&account));
        ConnectionBytes { account, backlog }
    }

    /// For pooled requests: the member chooses between HTTP/2 and HTTP/1.1.
    pub async fn connect_any(&self, held: &ConnectionBytes, trace: Option<&Trace>) -> Result<Transport, ConnectError> {
        self.connect(&[tls::H2, tls::HTTP_11], held, trace).await
    }

    /// For upgrades: only HTTP/1.1, because HTTP/2 does not support them (RFC 9113 §8.6).
    pub async fn connect_http1(
        &self,
        held: &ConnectionBytes,
        trace: Option<&Trace>,
    ) -> Result<Transport, ConnectError> {
        let transport = self.connect(&[tls::HTTP_11], held, trace).await?;
        if transport.alpn() == Some(tls::H2) {
            return Err(ConnectError::NoHttp1 { address: self.address() });
        }
        Ok(transport)
    }

    /// A dial's span, below `trace`.
    pub fn span(&self, trace: Option<&Trace>) -> Option<Span> {
        spans::dial(trace, &self.authority, self.dialer.word())
    }

    /// The span of waiting for a dial that another request began.
    pub fn shared_span(&self, trace: Option<&Trace>) -> Option<Span> {
        spans::shared_dial(trace, &self.authority, self.dialer.word())
    }

    async fn connect(
        &self,
        alpn: &[&[u8]],
        held: &ConnectionBytes,
        trace: Option<&Trace>,
    ) -> Result<Transport, ConnectError> {
        let attempt = self.circuit.attempt()?;
        let deadline = Instant::now() + self.dial_timeout;
        let Ok(_dialling) = timeout_at(deadline, self.dials.acquire()).await else {
            return Err(DialError::Timeout { address: self.address() }.into());
        };
        let outcome = tokio::select! {
            biased;
            // A connection for an unregistered cluster would be closed at once, and dialled again.
            () = self.ended.cancelled() => Err(ConnectError::Unregistered { address: self.address() }),
            outcome = self.connect_somewhere(alpn, held, deadline, trace) => outcome,
        };
        match &outcome {
            Ok(_) => attempt.succeeded(),
            // The member answers, but not upgrades: no reason to refuse other requests.
            Err(error) if error.is_for_upgrades_only() => attempt.succeeded(),
            Err(error) if !error.is_of_the_member() => drop(attempt),
            Err(error) => attempt.failed(error),
        }
        outcome
    }

    /// Connects to the first address that answers, in order of preference. Divides the time left
    /// evenly among the addresses left.
    async fn connect_somewhere(
        &self,
        alpn: &[&[u8]],
        held: &ConnectionBytes,
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
        held: &ConnectionBytes,
        deadline: Instant,
        trace: Option<&Trace>,
    ) -> Result<Transport, ConnectError> {
        let opened = match &self.dialer {
            Dialer::Direct => Opened::Tcp(dial::connect(&address.host, address.port, deadline).await?),
            // Boxed: rare, and larger than a direct dial.
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
    /// The dialer's name in spans.
    fn word(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Proxy(_) => "proxy",
            Self::Tunnel(_) => "tunnel",
        }
    }
}

/// Whether the peer supports none of the offered protocols (RFC 7301 §3.2).
fn is_no_protocol(error: &io::Error) -> bool {
    let alert = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(alert, Some(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)))
}

#[cfg(test)]
impl Target {
    /// `https://member.example:6443`, which no test dials.
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
