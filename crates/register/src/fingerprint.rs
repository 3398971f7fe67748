//! The content of a cluster Secret, as a text that shows whether it changed and nothing else
//! (annotation `cluster.core.oam.dev/source-hash`).

use std::fmt::Write as _;
use std::io;

use api::secret::ClusterSecret;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use secrecy::ExposeSecret as _;

/// Distinguishes these hashes from those of other programs and of other versions of the algorithm.
const PURPOSE: &[u8] = b"cluster.core.oam.dev/source-hash 1";

/// Keyed HMAC-SHA256 in hexadecimal of the Secret's content: equal for equal content, in every
/// process. The key is the `uid` of the source object, so that equal credentials of two clusters
/// have different hashes. The key is not secret: it is stored next to the hash.
pub fn of(secret: &ClusterSecret, uid: &str) -> String {
    let mut sum = Summing(hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, uid.as_bytes())));
    sum.add(PURPOSE);
    for (map, key, value) in secret.entries() {
        sum.add(map.as_bytes());
        sum.add(key.as_bytes());
        sum.add(value.expose_secret());
    }
    sum.end().0.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Recognizes the input of a derived cluster, so that the same input is not derived again. It keeps
/// only a sum of a credential, under a key of its own.
pub struct Sums(Option<hmac::Key>);

/// Equal for equal content, by the same [`Sums`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum([u8; 32]);

/// A sum in progress.
pub struct Summing(hmac::Context);

// === impl Sums ===

impl Default for Sums {
    fn default() -> Self {
        Self(hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok())
    }
}

impl Sums {
    /// `None` if the system has no randomness for a key.
    pub fn begin(&self) -> Option<Summing> {
        self.0.as_ref().map(hmac::Context::with_key).map(Summing)
    }
}

// === impl Summing ===

impl Summing {
    /// Adds a text. Its length precedes it, so that its end cannot be confused with the start of
    /// the next text.
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

/// Written content marks its own end, as JSON does.
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
