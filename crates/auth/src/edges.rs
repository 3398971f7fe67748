//! What a front proxy writes, as it is read, for tests on generated headers. No interface of the
//! library: it follows the code.

use std::sync::Arc;

use http::HeaderMap;

use crate::identity_headers::{IdentityCache, IdentityHeaders};
use crate::review::Opinion;
use crate::user::User;

/// What is known on one connection of a front proxy with the usual names of headers.
#[derive(Debug)]
pub struct FrontProxied {
    names: IdentityHeaders,
    known: IdentityCache,
}

// === impl FrontProxied ===

impl FrontProxied {
    /// The user in `headers`, if there is one; the reason why a user is refused.
    pub fn user(&mut self, headers: &HeaderMap) -> Result<Option<Arc<User>>, Arc<str>> {
        match self.known.user(headers, &self.names, 1) {
            Opinion::User(user) => Ok(Some(user)),
            // Nobody is asked.
            Opinion::None | Opinion::Failed(_) => Ok(None),
            Opinion::Refused(why) => Err(why),
        }
    }
}

impl Default for FrontProxied {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        let names = IdentityHeaders::new(
            &one("X-Remote-User"),
            &one("X-Remote-Uid"),
            &one("X-Remote-Group"),
            &one("X-Remote-Extra-"),
        );
        Self { names, known: IdentityCache::default() }
    }
}
