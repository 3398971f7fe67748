//! One attempt to make a link: proxy or TCP, TLS, registration.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use net::dial::{self, DialError};
use net::opened::Opened;
use net::proxy::ProxyError;
use net::tls;
use net::tls::client_files::ClientFilesError;
use net::transport::Transport;
use net::words;
use tokio::time::{Instant, timeout_at};
use tunnel::Settings;
use tunnel::register::{RegisterError, Registered, Registration, register};

use super::backoff::Kind;
use super::{CONNECT_TIMEOUT, Connector, Server};
use crate::credentials::{CredentialsError, Identity};

/// A server's answer, and the generation of the link's credential.
pub(super) struct NewLink {
    pub registered: Registered<Transport>,
    /// Generation of the credential.
    pub generation: u64,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("{0}")]
    ProxyTrust(ClientFilesError),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("TLS: {}", words::io(.0))]
    Tls(io::Error),
    #[error("TLS: no answer within {0:?}")]
    TlsTimeout(Duration),
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Makes one link as `identity`; `address` is none if a proxy resolves the server's name.
pub(super) async fn make(
    connector: Arc<Connector>,
    server: Arc<Server>,
    address: Option<SocketAddr>,
    link: u16,
    identity: Result<Identity, CredentialsError>,
) -> Result<NewLink, AttemptError> {
    let identity = identity?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let opened = open(&connector, &server, address, deadline).await?;
    let mut transport = timeout_at(deadline, opened.secure(&identity.config, server.verified.clone(), &[tls::HTTP_11]))
        .await
        .map_err(|_| AttemptError::TlsTimeout(CONNECT_TIMEOUT))?
        .map_err(AttemptError::Tls)?;
    match &mut transport {
        Transport::Tls(stream) => stream.get_mut().1.set_buffer_limit(Some(Settings::TLS_BUFFER)),
        Transport::ProxiedTls(stream) => stream.get_mut().1.set_buffer_limit(Some(Settings::TLS_BUFFER)),
        Transport::Plain(_) | Transport::Proxied(_) => {}
    }
    let registration = Registration {
        cluster: connector.cluster.clone(),
        agent: connector.agent.clone(),
        link,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (host, patience) = (server.name.to_string(), connector.settings.handshake_timeout);
    let registered = register(transport, &host, &registration, identity.token.as_ref(), patience).await?;
    Ok(NewLink { registered, generation: identity.generation })
}

async fn open(
    connector: &Connector,
    server: &Server,
    address: Option<SocketAddr>,
    deadline: Instant,
) -> Result<Opened, AttemptError> {
    let (host, port) = (server.name.host(), server.name.port());
    if let Some(proxy) = connector.outbound.proxy(host, port).map_err(AttemptError::ProxyTrust)? {
        return Ok(proxy.connect(host, port, deadline).await?);
    }
    let host = address.map_or_else(|| host.to_owned(), |address| address.ip().to_string());
    Ok(Opened::Tcp(dial::connect(&host, port, deadline).await?))
}

// === impl AttemptError ===

impl AttemptError {
    /// The cause in one word, for metrics.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Credentials(_) | Self::ProxyTrust(_) | Self::Register(RegisterError::Unfit(_)) => "credentials",
            Self::Dial(error) if error.is_timeout() => "timeout",
            Self::Dial(DialError::Resolve { .. } | DialError::NoAddress { .. }) => "lookup",
            Self::Dial(_) => "connect",
            Self::Proxy(_) => "proxy",
            Self::Tls(_) => "tls",
            Self::TlsTimeout(_) | Self::Register(RegisterError::Timeout(_)) => "timeout",
            Self::Register(RegisterError::Io(error)) if is_tls(error) => "tls",
            Self::Register(RegisterError::Io(_)) => "lost",
            Self::Register(RegisterError::Malformed(_)) => "malformed",
            Self::Register(RegisterError::Refused { status, .. }) => match *status {
                StatusCode::UNAUTHORIZED => "unauthenticated",
                StatusCode::FORBIDDEN => "forbidden",
                StatusCode::TOO_MANY_REQUESTS => "limit",
                StatusCode::SERVICE_UNAVAILABLE => "unavailable",
                _ => "refused",
            },
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.word() {
            "unauthenticated" | "forbidden" | "refused" | "malformed" | "credentials" | "tls" => Kind::Lasting,
            _ => Kind::Passing,
        }
    }

    /// Whether the server, or a dependency of it, is unavailable now.
    pub(super) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Register(RegisterError::Refused { status: StatusCode::SERVICE_UNAVAILABLE, .. }))
    }

    /// The wait that the server asked for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Register(RegisterError::Refused { retry_after, .. }) => *retry_after,
            _ => None,
        }
    }

    /// The operator's remedy.
    pub(super) fn advice(&self, connector: &Connector) -> String {
        let cluster = &connector.cluster;
        match self.word() {
            "unauthenticated" => {
                "the server does not accept the credential: it may be expired, from another hub, or signed by another CA"
                    .into()
            }
            "forbidden" => format!(
                "on the hub, allow the credential's user to create clustergateways/tunnel named {cluster} (cluster.core.oam.dev); \
                 without a hub the certificate's CN must be system:tunnel-agent:{cluster}"
            ),
            "credentials" => "correct the file: the agent reads it again before each attempt".into(),
            "tls" => {
                "check that --server-ca-file and --server-name fit the server's certificate, and that the server trusts ours"
                    .into()
            }
            "malformed" => "check that --server is the agents' listener of a tunnel-server".into(),
            "limit" => "too many links of this cluster or agent: lower --links, or the number of agents".into(),
            _ => String::new(),
        }
    }
}

/// In TLS 1.3 a server refuses our certificate after it has finished its own part, so the refusal
/// arrives while we wait for the answer.
fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
}
