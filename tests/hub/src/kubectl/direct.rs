//! The requests that kubectl would send with its kubeconfig, without its start.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::Method;
use kit::pki::{Issued, Trust};
use serde_json::Value;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Kubectl;
use crate::http::{Client, Response};

// === impl Kubectl ===

impl Kubectl {
    /// Sends a request as the user of its kubeconfig, which has one cluster and one user, with more
    /// `headers`. A `body` is JSON unless they say otherwise; null is none. A refusal is no error.
    pub fn send(&self, method: &Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Result<Response> {
        let kubeconfig: Value = serde_saphyr::from_str(&std::fs::read_to_string(&self.kubeconfig)?)?;
        let (cluster, user) = (&kubeconfig["clusters"][0]["cluster"], &kubeconfig["users"][0]["user"]);
        let server = cluster["server"].as_str().and_then(|url| url.strip_prefix("https://")).context("no server")?;
        let (address, below) =
            server.split_once('/').map_or((server, String::new()), |(address, path)| (address, format!("/{path}")));
        let mut roots = RootCertStore::empty();
        let authority = match cluster["certificate-authority-data"].as_str() {
            Some(data) => BASE64.decode(data)?,
            None => std::fs::read(text(cluster, "certificate-authority")?)?,
        };
        for root in certificates(&authority)? {
            roots.add(root)?;
        }
        let identity = match user["client-certificate"].as_str() {
            Some(certificate) => Some(issued(certificate, text(user, "client-key")?)?),
            None => None,
        };
        let client = Client::trusting(address.parse()?, Trust::Roots(&roots), identity.as_ref());
        let bearer = user["token"].as_str().map(|token| format!("Bearer {token}"));
        let mut all = vec![("accept", "application/json")];
        all.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            all.push(("content-type", "application/json"));
        }
        all.extend_from_slice(headers);
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        client.send(method, &format!("{below}{path}"), &all, body)
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value[field].as_str().with_context(|| format!("no {field}"))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    Ok(CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?)
}

/// A certificate and its key from these files.
fn issued(certificate: &str, key: &str) -> Result<Issued> {
    let (chain_pem, key_pem) = (std::fs::read_to_string(certificate)?, std::fs::read_to_string(key)?);
    let chain_der = certificates(chain_pem.as_bytes())?;
    Ok(Issued {
        certificate_pem: chain_pem.clone(),
        key_der: PrivateKeyDer::from_pem_slice(key_pem.as_bytes())?,
        key_pem,
        chain_pem,
        certificate_der: chain_der.first().context("an empty file")?.clone(),
        chain_der,
    })
}
