//! What a plugin issued, and how long it may be used.

use std::fmt;
use std::time::{Duration, SystemTime};

use net::tls::keypair::KeyPair;
use secrecy::SecretString;
use tokio::time::Instant;

/// What a plugin issued: a token, a client certificate, or both. Cannot be printed.
#[derive(Debug)]
pub struct Credential {
    /// Visible ASCII, so that it is a valid header value.
    pub token: Option<SecretString>,
    pub certificate: Option<KeyPair>,
    /// The earlier of what the plugin says and the certificate's end. None: until a member rejects
    /// it.
    pub expires: Option<SystemTime>,
}

/// A credential in use.
pub struct Issued {
    credential: Credential,
    since: Instant,
    lifetime: Option<Lifetime>,
}

/// The wall clock is asked once, when a credential comes in: from then on time only goes forward.
#[derive(Debug, Clone, Copy)]
struct Lifetime {
    renew: Instant,
    end: Instant,
}

/// Renewal begins this long before the end, as the Go cluster-gateway's.
const EARLY: Duration = Duration::from_mins(1);
/// Of a short life, this part: else it would always be time to renew.
const EARLY_PART: u32 = 5;
/// A credential that is over when it comes is used as long as this: clocks differ, and programs
/// must not be run for every request.
const SHORTEST: Duration = Duration::from_secs(1);
/// Times beyond are none: such an instant may not exist.
const LONGEST: Duration = Duration::from_hours(24 * 365);

// === impl Issued ===

impl Issued {
    /// Comes in now; `wall` is what the wall clock says.
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

    /// May be used, and need not be renewed yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.lifetime.is_none_or(|lifetime| Instant::now() < lifetime.renew)
    }

    /// May be used.
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
