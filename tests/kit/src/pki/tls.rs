//! rustls configurations for both ends of a test connection, made from the kit's own certificates.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{Authority, Issued};

/// Both HTTP versions, HTTP/2 preferred.
pub const ALPN_BOTH: &[&str] = &["h2", "http/1.1"];
/// HTTP/2 only.
pub const ALPN_H2: &[&str] = &["h2"];
/// HTTP/1.1 only.
pub const ALPN_H1: &[&str] = &["http/1.1"];

/// The certificates that a client trusts.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Certificates below this authority's root.
    Authority(&'a Authority),
    /// Certificates below exactly these roots.
    Roots(&'a RootCertStore),
    /// Any certificate at all.
    Anyone,
}

/// A server's demand of client certificates.
#[derive(Clone, Copy, Debug)]
pub enum ClientAuth<'a> {
    /// No certificate is requested.
    None,
    /// A certificate below this authority's root is requested, none is fine.
    Optional(&'a Authority),
    /// A certificate below this authority's root is required.
    Required(&'a Authority),
}

#[derive(Debug)]
struct TrustAnyone(WebPkiSupportedAlgorithms);

/// The aws-lc-rs provider with its default suites.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A client that trusts `trust`, presents `identity`, and offers `alpn` (nothing when empty).
pub fn client_config(trust: Trust<'_>, identity: Option<&Issued>, alpn: &[&str]) -> Arc<ClientConfig> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for TLS 1.2 and 1.3");
    let builder = match trust {
        Trust::Authority(authority) => builder.with_root_certificates(authority.root_store()),
        Trust::Roots(roots) => builder.with_root_certificates(roots.clone()),
        Trust::Anyone => {
            let verifier = TrustAnyone(provider.signature_verification_algorithms);
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let mut config = match identity {
        Some(identity) => builder
            .with_client_auth_cert(identity.chain_der.clone(), identity.key_der.clone_key())
            .expect("key and certificate were made together"),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols(alpn);
    Arc::new(config)
}

/// A server that presents `identity`, asks its clients for `client_auth`, and selects from `alpn`
/// (nothing when empty).
pub fn server_config(identity: &Issued, client_auth: ClientAuth<'_>, alpn: &[&str]) -> Arc<ServerConfig> {
    let provider = provider();
    let verifier = |authority: &Authority| {
        WebPkiClientVerifier::builder_with_provider(Arc::new(authority.root_store()), provider.clone())
    };
    let verifier = match client_auth {
        ClientAuth::None => WebPkiClientVerifier::no_client_auth(),
        ClientAuth::Optional(authority) => {
            verifier(authority).allow_unauthenticated().build().expect("the store has a root")
        }
        ClientAuth::Required(authority) => verifier(authority).build().expect("the store has a root"),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for TLS 1.2 and 1.3")
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain_der.clone(), identity.key_der.clone_key())
        .expect("key and certificate were made together");
    config.alpn_protocols = protocols(alpn);
    Arc::new(config)
}

fn protocols(alpn: &[&str]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.as_bytes().to_vec()).collect()
}

// === impl TrustAnyone ===

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
