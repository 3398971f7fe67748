//! What is wrong with a cluster whose Secret reads well.

use net::tls::client;
use net::tls::keypair::KeyPairError;

/// Why a well-formed specification still makes no usable cluster. Texts name the Secret's key.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("data key \"endpoint\": host or base path is not valid in a URL")]
    Endpoint,
    #[error("data key \"tls-server-name\" (or the endpoint's host) is not a DNS name or IP address: {0:?}")]
    ServerName(String),
    #[error("data key \"ca.crt\": {0}")]
    Trust(#[from] client::TrustError),
    #[error("data keys \"tls.crt\" and \"tls.key\": {0}")]
    KeyPair(#[from] KeyPairError),
    #[error("data key \"token\" cannot be sent in a header")]
    Token,
    #[error(
        "it is behind the tunnel (endpoint type ClusterProxy), and this gateway has none: start the gateway with --proxy-host (tunnel-servers) or --tunnel-listen (embedded)"
    )]
    NoTunnel,
    #[error("data key \"proxy-url\": {0}: give the proxy's CA by --proxy-ca-file")]
    ProxyTrust(client::TrustError),
}
