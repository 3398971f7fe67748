//! What a request to a member goes out with: a header, and connections that speak for the same identity.

use std::sync::Arc;

use http::HeaderValue;
use net::tls::keypair::KeyPair;

use super::cluster::ClusterError;
use super::dynamic::IssuedAccess;
use crate::upstream::Upstream;

/// One credential, ready to be used.
pub struct Access {
    /// `Bearer …`, marked sensitive. Absent when a client certificate is the credential.
    pub authorization: Option<HeaderValue>,
    pub upstream: Arc<Upstream>,
}

/// The access of one request. That of most clusters is their own and merely borrowed.
pub enum Held<'a> {
    Fixed(&'a Access),
    /// Issued by a program: the next request may get another.
    Issued(Arc<IssuedAccess>),
}

/// Makes connections that present a client certificate.
pub type Connect<'a> = &'a (dyn Fn(&KeyPair) -> Result<Arc<Upstream>, ClusterError> + Send + Sync);

/// A header with a bearer token.
pub fn bearer(token: &str) -> Result<HeaderValue, ClusterError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClusterError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

// === impl Held ===

impl Held<'_> {
    fn access(&self) -> &Access {
        match self {
            Self::Fixed(access) => access,
            Self::Issued(issued) => issued.access(),
        }
    }

    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.access().authorization.as_ref()
    }

    pub fn upstream(&self) -> &Upstream {
        &self.access().upstream
    }
}
