//! A cluster as a program is told of it.

use api::secret::{ClusterSpec, ConstEndpoint, ProxyUrl, Trust};
use exec_credential::ClusterInfo;

/// What client-go would say of the same cluster in a kubeconfig.
pub(super) fn cluster(spec: &ClusterSpec, endpoint: &ConstEndpoint) -> ClusterInfo {
    let (certificate_authority, insecure_skip_tls_verify) = match &spec.trust {
        Trust::Bundle(pem) => (Some(pem.clone()), false),
        Trust::SystemRoots => (None, false),
        Trust::Insecure => (None, true),
    };
    ClusterInfo {
        server: endpoint.url.to_string(),
        tls_server_name: spec.tls_server_name.clone(),
        insecure_skip_tls_verify,
        certificate_authority,
        proxy_url: endpoint.proxy.as_ref().map(ProxyUrl::exposed),
    }
}
