//! The roots that a member's certificate is verified against.
//!
//! Only an explicit setting turns verification off: a bundle that is present but unusable is an
//! error, and never falls back to the system's roots.

use std::net::IpAddr;

use super::endpoint::is_dns_name;
use super::{CA_KEY, Data, INSECURE_KEY, LEGACY_CA_KEY, MissingCa, SecretError, TLS_SERVER_NAME_KEY};

/// How a member's certificate is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Against these CA certificates only (PEM, at least one).
    Bundle(Vec<u8>),
    SystemRoots,
    /// No verification.
    Insecure,
}

// === impl Trust ===

impl Trust {
    pub(super) fn read(data: Data<'_>, missing: MissingCa) -> Result<Self, SecretError> {
        let found = [CA_KEY, LEGACY_CA_KEY].into_iter().find_map(|key| Some((key, data.bytes(key)?)));
        let bundle = found.filter(|(_, bundle)| !bundle.is_empty());
        let explicit = match data.text(INSECURE_KEY)? {
            None | Some("") => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) => return Err(SecretError::InsecureNotBoolean),
        };
        match (explicit, bundle) {
            // client-go's rest.TLSConfigFor also refuses kubeconfigs that set both.
            (Some(true), Some(_)) => Err(SecretError::InsecureWithCa),
            (Some(true), None) => Ok(Self::Insecure),
            (_, Some((_, bundle))) if has_pem(bundle, b"CERTIFICATE-----") => Ok(Self::Bundle(bundle.to_vec())),
            (_, Some((key, _))) => Err(SecretError::CaNotPem(key)),
            (None, None) if found.is_none() && missing == MissingCa::Insecure => Ok(Self::Insecure),
            (_, None) => Ok(Self::SystemRoots),
        }
    }
}

/// The name to verify instead of the endpoint's host.
pub(super) fn server_name(data: Data<'_>) -> Result<Option<String>, SecretError> {
    let Some(name) = data.text(TLS_SERVER_NAME_KEY)?.filter(|name| !name.is_empty()) else { return Ok(None) };
    if is_dns_name(name) || name.parse::<IpAddr>().is_ok() {
        Ok(Some(name.to_ascii_lowercase()))
    } else {
        Err(SecretError::ServerName)
    }
}

/// Whether a line looks like the start of a PEM block with a label that ends in `label`. The caller
/// does the real parse, which needs a TLS library. This check finds the common mistakes (DER,
/// double base64, a path) where the key's name is still known.
pub(super) fn has_pem(text: &[u8], label: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii();
        line.starts_with(b"-----BEGIN ") && line.ends_with(label)
    })
}
