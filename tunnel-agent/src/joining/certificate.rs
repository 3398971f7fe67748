//! The certificate that the hub signed: whose it is, and when it is time for the next one.

use std::time::{Duration, SystemTime};

use api::ocm_agent::OcmAgent;
use net::random::fraction;
use net::tls::keypair;
use x509_parser::certificate::X509Certificate;
use x509_parser::parse_x509_certificate;

/// A new one is asked for when this share of its life is left, and a little more or less by chance:
/// agents that joined together do not renew together. (`clientcert` of OCM's sdk-go does the same.)
const LEAST_LEFT: f64 = 0.20;
const MOST_LEFT: f64 = 0.25;

/// A certificate of the agent's, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    pub agent: OcmAgent,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// Its public key, DER (`SubjectPublicKeyInfo`).
    pub public_key: Vec<u8>,
}

/// What the hub signed is no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Useless {
    #[error("it is no certificate")]
    Unreadable,
    #[error("it is not an agent's of Open Cluster Management")]
    Name,
}

// === impl Certificate ===

impl Certificate {
    /// Reads the first certificate of a PEM file.
    pub fn parse(pem: &[u8]) -> Result<Self, Useless> {
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

    /// Whether it has expired. One that is not valid yet is so by a clock that is wrong: the hub's
    /// decides.
    pub fn is_over_at(&self, now: SystemTime) -> bool {
        self.not_after <= now
    }

    /// When the next one is to be asked for.
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
}
