//! The dialling side: one configuration per member, with its trust and our client certificate, if
//! it uses one.

use std::sync::{Arc, OnceLock};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use super::keypair::{KeyPair, KeyPairError, certificates};
use super::pinned::WebPkiOrPinned;
use super::verifier::{AcceptAny, Verifier};

/// Sessions remembered per member: connections are few and long, so a few are enough.
const SESSIONS: usize = 8;

/// The CAs of servers.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// Only the certificates of this PEM text; system roots are never added.
    Bundle(&'a [u8]),
    SystemRoots,
    /// Any server. Only if the operator explicitly requests it.
    Insecure,
}

/// Why no configuration can be made.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("CA bundle: {0}")]
    Bundle(KeyPairError),
    #[error("CA bundle holds no certificate that can serve as a trust anchor: {0}")]
    Anchor(rustls::Error),
    #[error("no system root certificates found on this host")]
    NoSystemRoots,
}

/// A client configuration without ALPN, because each connection chooses its protocols.
pub fn config(trust: Trust<'_>, identity: Option<&KeyPair>) -> Result<Arc<ClientConfig>, TrustError> {
    let provider = super::provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider supports TLS 1.2 and 1.3");
    let builder = match trust {
        Trust::Bundle(pem) => {
            let judge = bundle(pem, Arc::clone(&provider))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier { judge, provider }))
        }
        Trust::SystemRoots => builder.with_root_certificates(system_roots()?),
        Trust::Insecure => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier { judge: AcceptAny, provider }))
        }
    };
    let mut config = match identity {
        Some(pair) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair.certified_key()))),
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}

fn bundle(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<WebPkiOrPinned, TrustError> {
    let bundle = certificates(pem).map_err(TrustError::Bundle)?;
    let mut roots = RootCertStore::empty();
    let mut refused = None;
    for certificate in &bundle {
        if let Err(error) = roots.add(certificate.clone()) {
            refused = Some(error);
        }
    }
    match refused {
        // One odd certificate in a bundle of good ones is common and harmless.
        Some(error) if roots.is_empty() => Err(TrustError::Anchor(error)),
        _ => {
            let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            Ok(WebPkiOrPinned { webpki: webpki.expect("there are roots, and no revocation lists"), bundle })
        }
    }
}

/// Read once, because thousands of members may share them.
fn system_roots() -> Result<Arc<RootCertStore>, TrustError> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if roots.is_empty() { Err(TrustError::NoSystemRoots) } else { Ok(Arc::clone(roots)) }
}
