//! The credential of a request to a member: a header, and connections with the same identity.

use std::sync::Arc;

use exec_credential::Issued;
use http::HeaderValue;

use super::ClusterError;
use crate::upstream::Upstream;

/// One credential, ready for use.
pub struct MemberCredential {
    /// `Bearer …`, marked sensitive. None if the credential is a client certificate.
    pub authorization: Option<HeaderValue>,
    pub upstream: Arc<Upstream>,
}

/// A credential that a program issued, ready for use.
pub struct IssuedCredential {
    pub(super) issued: Arc<Issued>,
    pub(super) ready: MemberCredential,
}

/// The credential of one request. Most clusters have a fixed one, which is only borrowed.
pub enum CredentialLease<'a> {
    Fixed(&'a MemberCredential),
    /// Issued by a program: the next request may get another.
    Issued(Arc<IssuedCredential>),
}

/// A header with a bearer token.
pub fn bearer(token: &str) -> Result<HeaderValue, ClusterError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClusterError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

// === impl IssuedCredential ===

impl IssuedCredential {
    pub fn has_certificate(&self) -> bool {
        self.issued.credential().certificate.is_some()
    }

    /// Whether its connections present the certificate of `issued`: programs often issue the same
    /// one again.
    pub(super) fn presents(&self, issued: &Issued) -> bool {
        match (&self.issued.credential().certificate, &issued.credential().certificate) {
            (Some(one), Some(other)) => one.certified_key().cert == other.certified_key().cert,
            _ => false,
        }
    }
}

// === impl CredentialLease ===

impl CredentialLease<'_> {
    fn credential(&self) -> &MemberCredential {
        match self {
            Self::Fixed(credential) => credential,
            Self::Issued(issued) => &issued.ready,
        }
    }

    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.credential().authorization.as_ref()
    }

    pub fn upstream(&self) -> &Upstream {
        &self.credential().upstream
    }
}
