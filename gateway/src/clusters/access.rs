//! What a request to a member goes out with: a header, and connections that speak for the same
//! identity.

use std::sync::Arc;

use http::HeaderValue;

use super::error::ClusterError;
use crate::upstream::Upstream;

/// One credential, ready to be used.
pub struct Access {
    /// `Bearer …`, marked sensitive. Absent when a client certificate is the credential.
    pub authorization: Option<HeaderValue>,
    pub upstream: Arc<Upstream>,
}

/// A header with a bearer token.
pub fn bearer(token: &str) -> Result<HeaderValue, ClusterError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClusterError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}
