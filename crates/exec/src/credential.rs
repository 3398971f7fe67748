//! A credential from a plugin, and how long it may be used.

use std::fmt;
use std::time::{Duration, SystemTime};

use net::tls::keypair::KeyPair;
use secrecy::SecretString;
use tokio::time::Instant;

/// A credential from a plugin: a token, a client certificate, or both. Not printable.
#[derive(Debug)]
pub struct Credential {
    /// Visible ASCII, so that it is a valid header value.
    pub token: Option<SecretString>,
    pub certificate: Option<KeyPair>,
    /// The earlier of the plugin's expiration and the certificate's end. `None`: it is used until a
    /// member rejects it.
    pub expires: Option<SystemTime>,
}

/// A credential in use.
pub struct Issued {
    credential: Credential,
    since: Instant,
    lifetime: Option<Lifetime>,
}

/// Computed once from the wall clock, when the credential arrives. After that only monotonic time
/// counts.
#[derive(Debug, Clone, Copy)]
struct Lifetime {
    renew: Instant,
    end: Instant,
}

/// Renewal begins this long before the end, like that of the Go cluster-gateway.
const EARLY: Duration = Duration::from_mins(1);
/// For a short lifetime, renewal begins this part before the end. Otherwise renewal would always be
/// due.
const EARLY_PART: u32 = 5;
/// A credential that has expired on arrival is used for this long, because clocks differ and each
/// request must not cause a run.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest lifetime. A later instant may not be representable.
const LONGEST: Duration = Duration::from_hours(24 * 365);

// === impl Issued ===

impl Issued {
    /// A credential that arrives now. `wall` is the current wall clock.
    pub(crate) fn new(credential: Credential, wall: SystemTime) -> Self {
        let since = Instant::now();
        let lifetime = credential.expires.map(|expires| {
            let left = expires.duration_since(wall).unwrap_or_default().clamp(SHORTEST, LONGEST);
            Lifetime { renew: since + left.saturating_sub(EARLY.min(left / EARLY_PART)), end: since + left }
        });
        Self { credential, since, lifetime }
    }

    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Whether it may be used and needs no renewal yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.lifetime.is_none_or(|lifetime| Instant::now() < lifetime.renew)
    }

    /// Whether it may be used.
    pub(crate) fn is_valid(&self) -> bool {
        self.lifetime.is_none_or(|lifetime| Instant::now() < lifetime.end)
    }

    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("credential", &self.credential).finish_non_exhaustive()
    }
}
