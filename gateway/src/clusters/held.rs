//! The access that one request goes out with.

use std::sync::Arc;

use http::HeaderValue;

use super::access::Access;
use super::dynamic::IssuedAccess;
use crate::upstream::Upstream;

/// That of most clusters is their own and merely borrowed.
pub enum Held<'a> {
    Fixed(&'a Access),
    /// Issued by a program: the next request may get another.
    Issued(Arc<IssuedAccess>),
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
