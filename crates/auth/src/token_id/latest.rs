//! The latest token of one connection, hashed once: most clients send the same one with every
//! request.
//!
//! It is stored in plain text here, as in the connection's HPACK table, for no longer than the
//! connection lives. Only its hash is reused: whether the token is still valid is checked each
//! time.

use aws_lc_rs::constant_time;
use secrecy::{ExposeSecret as _, SecretSlice};

use super::{TokenHasher, TokenId};

/// Longer tokens are hashed each time, because there are many connections.
const LONGEST: usize = 4 * 1024;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Latest(Option<HashedToken>);

#[derive(Debug)]
struct HashedToken {
    token: SecretSlice<u8>,
    id: TokenId,
    hasher: u64,
}

// === impl Latest ===

impl Latest {
    /// The ID of `token` by `hasher`.
    pub(crate) fn id(&mut self, token: &[u8], hasher: &TokenHasher) -> TokenId {
        // In constant time: behind a load balancer one connection may carry requests of several
        // users.
        if let Some(known) = &self.0
            && known.hasher == hasher.serial
            && constant_time::verify_slices_are_equal(known.token.expose_secret(), token).is_ok()
        {
            return known.id;
        }
        let id = hasher.id(token);
        let known = || HashedToken { token: token.to_vec().into(), id, hasher: hasher.serial };
        self.0 = (token.len() <= LONGEST).then(known);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_gets_its_own_hash_by_every_hasher() {
        let (one, other) = (TokenHasher::new(), TokenHasher::new());
        let mut latest = Latest::default();
        let long = vec![b'a'; LONGEST + 1];
        for _ in 0..2 {
            for token in [&b"alice"[..], b"alice", b"bob", b"", &long, &long] {
                assert_eq!(latest.id(token, &one), one.id(token));
                assert_eq!(latest.0.is_some(), token.len() <= LONGEST);
                assert_eq!(latest.id(token, &other), other.id(token));
            }
        }
        assert!(!format!("{latest:?}").contains("alice"));
    }
}
