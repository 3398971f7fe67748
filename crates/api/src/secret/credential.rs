//! The credential that the gateway presents to a member.

use std::fmt;

use secrecy::{SecretSlice, SecretString};

use super::exec::ExecConfig;
use super::trust::has_pem;
use super::{Data, EXEC_KEY, SecretError, TLS_CERT_KEY, TLS_PRIVATE_KEY_KEY, TOKEN_KEY};

/// A credential for a member. Not printable.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Bearer token: visible ASCII, so that it is a valid header value.
    Token(SecretString),
    /// Client certificate chain and its key, both PEM.
    X509 { certificate: Vec<u8>, private_key: SecretSlice<u8> },
    /// A program issues it on demand.
    Exec(ExecConfig),
}

/// Values of the label [`super::CREDENTIAL_TYPE_LABEL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialType {
    ServiceAccountToken,
    X509Certificate,
    Dynamic,
}

// === impl Credential ===

impl Credential {
    pub fn kind(&self) -> CredentialType {
        match self {
            Self::Token(_) => CredentialType::ServiceAccountToken,
            Self::X509 { .. } => CredentialType::X509Certificate,
            Self::Exec(_) => CredentialType::Dynamic,
        }
    }

    pub(super) fn read(kind: CredentialType, data: Data<'_>) -> Result<Self, SecretError> {
        let required = |key| data.bytes(key).filter(|value| !value.is_empty()).ok_or(SecretError::NoCredential(key));
        match kind {
            CredentialType::ServiceAccountToken => token(required(TOKEN_KEY)?),
            CredentialType::Dynamic => ExecConfig::parse(required(EXEC_KEY)?).map(Self::Exec),
            CredentialType::X509Certificate => {
                let (certificate, private_key) = (required(TLS_CERT_KEY)?, required(TLS_PRIVATE_KEY_KEY)?);
                if !has_pem(certificate, b"CERTIFICATE-----") {
                    return Err(SecretError::CertificateNotPem);
                }
                if !has_pem(private_key, b"PRIVATE KEY-----") {
                    return Err(SecretError::PrivateKeyNotPem);
                }
                let private_key = SecretSlice::from(private_key.to_vec());
                Ok(Self::X509 { certificate: certificate.to_vec(), private_key })
            }
        }
    }
}

/// Trims the token. The Go cluster-gateway does not, so each of its requests fails with a token
/// that ends in a newline, as pasted tokens do.
fn token(bytes: &[u8]) -> Result<Credential, SecretError> {
    let bytes = bytes.trim_ascii_end();
    if bytes.is_empty() {
        return Err(SecretError::NoCredential(TOKEN_KEY));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| SecretError::TokenNotVisible)?;
    if !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(SecretError::TokenNotVisible);
    }
    Ok(Credential::Token(SecretString::from(text)))
}

// === impl CredentialType ===

impl CredentialType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ServiceAccountToken => "ServiceAccountToken",
            Self::X509Certificate => "X509Certificate",
            Self::Dynamic => "Dynamic",
        }
    }

    pub(super) fn parse(label: &str) -> Result<Self, SecretError> {
        match label {
            "ServiceAccountToken" => Ok(Self::ServiceAccountToken),
            "X509Certificate" => Ok(Self::X509Certificate),
            "Dynamic" => Ok(Self::Dynamic),
            other => Err(SecretError::UnknownCredentialType(other.to_owned())),
        }
    }
}

impl fmt::Display for CredentialType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
