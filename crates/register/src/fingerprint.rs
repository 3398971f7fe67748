//! What stands in a cluster Secret, as a text that says whether it changed and nothing else
//! (annotation `cluster.core.oam.dev/source-hash`).

use std::fmt::Write as _;
use std::io;

use api::secret::ClusterSecret;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use secrecy::ExposeSecret as _;

/// Other programs' texts, and those of another reckoning, are never taken for these.
const PURPOSE: &[u8] = b"cluster.core.oam.dev/source-hash 1";

/// Keyed HMAC-SHA256 in hexadecimal of all that the Secret says: equal for equal content, whichever
/// process reckons it. The key is the `uid` of the source object, so that equal credentials of
/// two clusters have different hashes. It is no secret: it stands beside the hash.
pub fn of(secret: &ClusterSecret, uid: &str) -> String {
    let mut sum = Summing(hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, uid.as_bytes())));
    sum.add(PURPOSE);
    for (map, key, value) in secret.entries() {
        sum.add(map.as_bytes());
        sum.add(key.as_bytes());
        sum.add(value.expose_secret());
    }
    sum.end().0.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a text does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Recognizes what a cluster was derived from, so that the same need not be derived again. Of a
/// credential nothing is kept but a sum, and the key of that is this one's own.
pub struct Sums(Option<hmac::Key>);

/// Equal for equal content, by the same [`Sums`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum([u8; 32]);

/// A sum that more is added to.
pub struct Summing(hmac::Context);

// === impl Sums ===

impl Default for Sums {
    fn default() -> Self {
        Self(hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok())
    }
}

impl Sums {
    /// `None`: the system has no randomness for a key.
    pub fn begin(&self) -> Option<Summing> {
        self.0.as_ref().map(hmac::Context::with_key).map(Summing)
    }
}

// === impl Summing ===

impl Summing {
    /// A text of its own. Its length comes before it: none can be read as the end of another and
    /// the start of the next.
    pub fn add(&mut self, text: &[u8]) {
        self.0.update(&(text.len() as u64).to_be_bytes());
        self.0.update(text);
    }

    pub fn end(self) -> Sum {
        let mut sum = [0; 32];
        sum.copy_from_slice(self.0.sign().as_ref());
        Sum(sum)
    }
}

/// What is written says by itself where it ends, as JSON does.
impl io::Write for Summing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
