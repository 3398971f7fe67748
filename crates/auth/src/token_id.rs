//! The form of a token in memory: a keyed hash.

mod latest;

use std::hash::{Hash, Hasher};

use aws_lc_rs::hmac;

pub(crate) use self::latest::Latest;

/// Hashes tokens with a key of this process.
#[derive(Debug, Clone)]
pub(crate) struct TokenHasher {
    key: hmac::Key,
    /// Distinguishes hashers.
    serial: u64,
}

/// A token's form in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenId([u8; 32]);

// === impl TokenId ===

impl Hash for TokenId {
    /// Uses a part of it, because it is a hash with a secret key already.
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Some(part) = self.0.first_chunk() {
            state.write_u64(u64::from_ne_bytes(*part));
        }
    }
}

// === impl TokenHasher ===

impl TokenHasher {
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).expect("the operating system has randomness");
        let mut serial = [0; 8];
        aws_lc_rs::rand::fill(&mut serial).expect("the operating system has randomness");
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key), serial: u64::from_ne_bytes(serial) }
    }

    pub(crate) fn id(&self, token: &[u8]) -> TokenId {
        let tag = hmac::sign(&self.key, token);
        let mut id = [0; 32];
        id.copy_from_slice(tag.as_ref());
        TokenId(id)
    }
}
