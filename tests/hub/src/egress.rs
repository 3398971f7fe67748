//! A control plane that cannot reach its kubelets directly: another replica of the member's API
//! server whose egress selector sends everything for the cluster through an HTTP CONNECT proxy.
//!
//! `EgressSelectorConfiguration`: kubernetes
//! `staging/src/k8s.io/apiserver/pkg/server/egressselector`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use kit::pki::PemFiles;
use serde_json::{Value, json};

use crate::control_plane::ApiServer;

/// How the API server speaks to its proxy.
#[derive(Clone, Debug)]
pub enum Proxy {
    /// Over a Unix socket.
    Uds(PathBuf),
    /// Over TCP with TLS, both sides with a certificate.
    Tls {
        /// The proxy's listening address.
        address: SocketAddr,
        /// PEM file with the authority that signed its certificate.
        authority: PathBuf,
        /// The certificate that the API server presents.
        identity: PemFiles,
    },
}

// === impl Proxy ===

impl Proxy {
    /// Starts another replica of `server`, named `name`, that reaches its kubelets through this
    /// proxy. Does not wait for it.
    pub fn start_replica(&self, server: &ApiServer, name: &str) -> Result<ApiServer> {
        let path = server.launcher().file(&format!("{name}-egress.json"));
        std::fs::write(&path, self.document().to_string())?;
        server.start_replica(name, &[format!("--egress-selector-config-file={}", path.display())])
    }

    fn document(&self) -> Value {
        let transport = match self {
            Self::Uds(path) => json!({"uds": {"udsName": path}}),
            Self::Tls { address, authority, identity } => json!({"tcp": {
                "url": format!("https://{address}"),
                "tlsConfig": {"caBundle": authority, "clientCert": identity.certificate, "clientKey": identity.key},
            }}),
        };
        let connection = json!({"proxyProtocol": "HTTPConnect", "transport": transport});
        json!({
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        })
    }
}
