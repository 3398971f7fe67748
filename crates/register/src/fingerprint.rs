//! What stands in a cluster Secret, as a text that says whether it changed and nothing else
//! (annotation `cluster.core.oam.dev/source-hash`).

use std::fmt::Write as _;

use api::secret::ClusterSecret;
use aws_lc_rs::hmac;
use secrecy::ExposeSecret as _;

/// Other programs' texts, and those of another reckoning, are never taken for these.
const PURPOSE: &[u8] = b"cluster.core.oam.dev/source-hash 1";

/// Keyed HMAC-SHA256 in hexadecimal of all that the Secret says: equal for equal content, whichever
/// process reckons it. The key is the `uid` of the source object, so that equal credentials of
/// two clusters have different hashes. It is no secret: it stands beside the hash.
///
/// Fallbacks of a fixed URL do not count: no Secret has them.
pub fn of(secret: &ClusterSecret, uid: &str) -> String {
    let mut hmac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, uid.as_bytes()));
    // Lengths before texts: none can be read as the end of another and the start of the next.
    let mut add = |bytes: &[u8]| {
        hmac.update(&(bytes.len() as u64).to_be_bytes());
        hmac.update(bytes);
    };
    add(PURPOSE);
    for (map, key, value) in secret.entries() {
        add(map.as_bytes());
        add(key.as_bytes());
        add(value.expose_secret());
    }
    hmac.sign().as_ref().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a text does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
