//! The certificate of an agent: asked for, and as it comes.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::pki::Issued;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

const CLUSTER_LABEL: &str = "open-cluster-management.io/cluster-name";
/// Label of all requests of one crowd.
pub const LABEL: &str = "bench";

/// A key, and the request for its certificate.
pub struct Asking {
    /// Name of the request, and of the cluster.
    pub name: String,
    key: KeyPair,
    request: String,
}

// === impl Asking ===

impl Asking {
    /// The request of the agent of cluster `name`.
    pub fn new(name: String) -> Result<Self> {
        let key = KeyPair::generate()?;
        let own = format!("system:open-cluster-management:{name}");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, &own);
        params.distinguished_name.push(DnType::CommonName, format!("{own}:agent"));
        let request = STANDARD.encode(params.serialize_request(&key)?.pem()?);
        Ok(Self { name, key, request })
    }

    /// The request as one of a crowd; without the label by which the controllers know agents'
    /// unless it `is_agents`.
    pub fn document(&self, crowd: &str, is_agents: bool) -> Value {
        let mut labels = json!({LABEL: crowd});
        if is_agents {
            labels[CLUSTER_LABEL] = self.name.as_str().into();
        }
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "request": self.request,
                "usages": ["digital signature", "key encipherment", "client auth"]},
        })
    }

    /// The key with the certificate in a request's status.
    pub fn issued(&self, certificate: &str) -> Result<Issued> {
        let pem = String::from_utf8(STANDARD.decode(certificate)?)?;
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).context("not a certificate")?;
        Ok(Issued {
            certificate_pem: pem.clone(),
            key_pem: self.key.serialize_pem(),
            chain_pem: pem,
            certificate_der: der.clone(),
            key_der: PrivatePkcs8KeyDer::from(self.key.serialize_der()).into(),
            chain_der: vec![der],
        })
    }
}
