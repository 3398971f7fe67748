//! The certificate that the hub signed: its subject, and when to renew it.

use std::time::{Duration, SystemTime};

use api::ocm_agent::OcmAgent;
use net::random::fraction;
use net::tls::keypair;
use x509_parser::certificate::X509Certificate;
use x509_parser::parse_x509_certificate;

/// A new one is requested when this share of its life is left, or a random bit more, up to
/// `MOST_LEFT`: agents that joined together do not renew together. (`clientcert` of OCM's sdk-go
/// does the same.)
const LEAST_LEFT: f64 = 0.20;
const MOST_LEFT: f64 = 0.25;

/// Limit of a certificate with its chain, in bytes.
const LARGEST: usize = 64 << 10;
/// A certificate that is valid for less is not used: it would be renewed again and again.
const SHORTEST: Duration = Duration::from_mins(1);
/// Minimum between two renewals, or half of the rest of a shorter life: a hub may backdate a
/// certificate by more than it grants.
const LEAST_USE: Duration = Duration::from_mins(1);

/// A certificate of the agent, and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    pub agent: OcmAgent,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// Its public key, DER (`SubjectPublicKeyInfo`).
    pub public_key: Vec<u8>,
}

/// Why a certificate from the hub is useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Useless {
    #[error("it is not a certificate")]
    Unreadable,
    #[error("it has {0} bytes, more than {LARGEST}")]
    Large(usize),
    #[error("it is not an agent's of Open Cluster Management")]
    Name,
    #[error("it is another agent's, or another cluster's")]
    Other,
    #[error("it is for another key")]
    Key,
    #[error(
        "it is valid for {0:?} from now, less than {SHORTEST:?}: compare the clocks, and check the duration of the \
         hub's signer"
    )]
    Short(Duration),
}

// === impl Certificate ===

impl Certificate {
    /// Reads the first certificate of a PEM file.
    pub fn parse(pem: &[u8]) -> Result<Self, Useless> {
        if pem.len() > LARGEST {
            return Err(Useless::Large(pem.len()));
        }
        let certificates = keypair::certificates(pem).map_err(|_| Useless::Unreadable)?;
        let der = certificates.first().ok_or(Useless::Unreadable)?;
        let (_, certificate) = parse_x509_certificate(der).map_err(|_| Useless::Unreadable)?;
        let agent = common_name(&certificate).and_then(OcmAgent::of_common_name).ok_or(Useless::Name)?;
        let validity = certificate.validity();
        Ok(Self {
            agent,
            not_before: moment(validity.not_before.timestamp()),
            not_after: moment(validity.not_after.timestamp()),
            public_key: certificate.public_key().raw.to_vec(),
        })
    }

    /// Whether it has expired. One that is not valid yet counts as valid: our clock is wrong then,
    /// and the hub's decides.
    pub fn is_over_at(&self, now: SystemTime) -> bool {
        self.not_after <= now
    }

    /// Whether a certificate for `agent` and this public key is usable from `now` on.
    pub fn check(&self, agent: &OcmAgent, public_key: Option<&[u8]>, now: SystemTime) -> Result<(), Useless> {
        if self.agent != *agent {
            return Err(Useless::Other);
        }
        if public_key != Some(&self.public_key) {
            return Err(Useless::Key);
        }
        let left = self.not_after.duration_since(now).unwrap_or_default();
        if left < SHORTEST { Err(Useless::Short(Duration::from_secs(left.as_secs()))) } else { Ok(()) }
    }

    /// Its expiry (RFC 3339).
    pub fn ends(&self) -> String {
        api::time::text(self.not_after)
    }

    /// When to request the next one, if this one was issued just now.
    pub fn next_renewal(&self, now: SystemTime) -> SystemTime {
        let left = self.not_after.duration_since(now).unwrap_or_default();
        self.renewal().max(now + LEAST_USE.min(left / 2))
    }

    /// When to request the next one.
    pub fn renewal(&self) -> SystemTime {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        let left = LEAST_LEFT + (MOST_LEFT - LEAST_LEFT) * fraction();
        self.not_before + life.mul_f64(1.0 - left)
    }
}

fn common_name<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a str> {
    certificate.subject().iter_common_name().next()?.as_str().ok()
}

fn moment(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn it_is_renewed_when_a_fifth_to_a_quarter_is_left() {
        let name = "system:open-cluster-management:c1:agent";
        let leaf = Leaf::client(name).valid(time::Duration::days(-1), time::Duration::days(99));
        let issued = Authority::new("hub").issue(&leaf);
        let certificate = Certificate::parse(issued.chain_pem.as_bytes()).unwrap();
        assert_eq!(certificate.agent.common_name(), name);
        assert!(!certificate.is_over_at(SystemTime::now()) && certificate.is_over_at(certificate.not_after));
        for _ in 0..100 {
            let left = certificate.not_after.duration_since(certificate.renewal()).unwrap();
            assert!((20 * DAY..=25 * DAY).contains(&left), "{left:?}");
        }
        let other = Authority::new("hub").issue(&Leaf::client("system:node:c1"));
        assert_eq!(Certificate::parse(other.chain_pem.as_bytes()), Err(Useless::Name));
        assert_eq!(Certificate::parse(b"nothing"), Err(Useless::Unreadable));
    }

    #[test]
    fn what_is_not_for_this_agent_and_key_or_ends_at_once_is_not_used() {
        let agent = |text: &str| OcmAgent::of_common_name(text).unwrap();
        let name = "system:open-cluster-management:c1:agent";
        let issued = |seconds: i64| {
            let leaf = Leaf::client(name).valid(time::Duration::minutes(-5), time::Duration::seconds(seconds));
            Certificate::parse(Authority::new("hub").issue(&leaf).chain_pem.as_bytes()).unwrap()
        };
        let now = SystemTime::now();
        let good = issued(600);
        let key = Some(&*good.public_key);
        assert_eq!(good.check(&agent(name), key, now), Ok(()));
        assert_eq!(good.check(&agent("system:open-cluster-management:c2:agent"), key, now), Err(Useless::Other));
        assert_eq!(good.check(&agent("system:open-cluster-management:c1:other"), key, now), Err(Useless::Other));
        assert_eq!(good.check(&agent(name), Some(b"another"), now), Err(Useless::Key));
        assert_eq!(good.check(&agent(name), None, now), Err(Useless::Key));
        for seconds in [-10, 1, 50] {
            let short = issued(seconds);
            let judged = short.check(&agent(name), Some(&short.public_key), now);
            assert!(matches!(judged, Err(Useless::Short(_))), "{seconds}: {judged:?}");
        }
        assert_eq!(Certificate::parse(&vec![b' '; LARGEST + 1]), Err(Useless::Large(LARGEST + 1)));
    }

    /// However far back a hub dates it.
    #[test]
    fn it_is_not_renewed_at_once() {
        let leaf = Leaf::client("system:open-cluster-management:c1:agent")
            .valid(time::Duration::hours(-10), time::Duration::seconds(90));
        let issued = Authority::new("hub").issue(&leaf);
        let certificate = Certificate::parse(issued.chain_pem.as_bytes()).unwrap();
        let now = SystemTime::now();
        assert!(certificate.renewal() < now, "most of its life is over");
        let wait = certificate.next_renewal(now).duration_since(now).unwrap();
        assert!((Duration::from_secs(40)..=LEAST_USE).contains(&wait), "{wait:?}");
        let long = Certificate { not_after: now + DAY, not_before: now, ..certificate };
        assert!(long.next_renewal(now) >= now + DAY.mul_f64(0.75), "and not sooner than any other");
    }
}
