//! Parses a plugin's standard output: an `ExecCredential`
//! (`k8s.io/client-go/pkg/apis/clientauthentication/v1`).
//!
//! All of it may be secret, so errors only repeat a version or a kind, cut short.

use std::time::SystemTime;

use api::secret::ExecApiVersion;
use net::tls::end;
use net::tls::keypair::{KeyPair, KeyPairError};
use secrecy::SecretString;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::credential::Credential;
use crate::error::ExecError;
use crate::redact::one_line;

/// Most characters repeated of a version or kind.
const SHOWN: usize = 80;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    client_certificate_data: Option<String>,
    #[serde(default)]
    client_key_data: Option<String>,
    #[serde(default)]
    expiration_timestamp: Option<String>,
}

/// The credential in `stdout`, which must have the configured version. `kind` may be missing, as
/// for the Go cluster-gateway.
pub(crate) fn parse(stdout: &[u8], configured: ExecApiVersion) -> Result<Credential, ExecError> {
    let written: ExecCredential = serde_json::from_slice(stdout)
        .map_err(|error| ExecError::Decode { line: error.line(), column: error.column() })?;
    if let Some(kind) = written.kind.filter(|kind| !kind.is_empty() && kind != "ExecCredential") {
        return Err(ExecError::Kind { kind: shown(&kind) });
    }
    let returned = written.api_version.unwrap_or_default();
    if returned != configured.as_str() {
        return Err(ExecError::Version { configured: configured.as_str(), returned: shown(&returned) });
    }
    let status = written.status.ok_or(ExecError::NoStatus)?;
    let present = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (token, certificate, key) =
        (present(status.token), present(status.client_certificate_data), present(status.client_key_data));
    if token.is_none() && certificate.is_none() && key.is_none() {
        return Err(ExecError::NoCredential);
    }
    let pair = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(KeyPair::from_pem(certificate.as_bytes(), key.as_bytes())?),
        (None, None) => None,
        _ => return Err(ExecError::HalfPair),
    };
    let said = present(status.expiration_timestamp).as_deref().map(timestamp).transpose()?;
    let expires = said.into_iter().chain(pair.as_ref().map(end_of).transpose()?).min();
    Ok(Credential { token: token.as_deref().map(bearer).transpose()?, certificate: pair, expires })
}

/// Like a Secret's token: trims the end, and refuses what a header cannot carry.
fn bearer(token: &str) -> Result<SecretString, ExecError> {
    let token = token.trim_ascii_end();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ExecError::Token);
    }
    Ok(token.into())
}

fn timestamp(text: &str) -> Result<SystemTime, ExecError> {
    OffsetDateTime::parse(text, &Rfc3339).map(SystemTime::from).map_err(|_| ExecError::Expiration)
}

/// The certificate's end. An expired one would fail in the handshake, where no renewal starts.
fn end_of(pair: &KeyPair) -> Result<SystemTime, ExecError> {
    let chain = &pair.certified_key().cert;
    let leaf = chain.first().ok_or(KeyPairError::NoCertificate)?;
    Ok(end::of(leaf).ok_or(KeyPairError::Certificate)?)
}

fn shown(text: &str) -> String {
    one_line(&text.chars().take(SHOWN).collect::<String>())
}

#[cfg(test)]
mod tests;
