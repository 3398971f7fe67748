//! The reason that is written for an unhealthy member: only the kind of its failure.
//!
//! A new reason costs an update of a Secret and an event for every watcher of clusters, and every
//! replica writes its own. So the same cause must give the same text each time and everywhere: no
//! times, as in rustls' text for an expired certificate, no addresses if there may be several, and
//! no text of the member or a proxy. The details are in the log, and in the response to a request.

use std::fmt;
use std::io;

use net::dial::DialError;
use net::proxy::{ProxyError, Refusal};
use rustls::{AlertDescription, CertificateError};

use crate::upstream::ConnectError;

/// Has the Go cluster-gateway's words where it has some (`HealthyReasonType` in its
/// `clustergateway_types.go`). Of several addresses' reasons the greatest is shown, so they are
/// ordered by how much they reveal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    ConnectionTimeout,
    /// In few words. A number may occur only if it belongs to the cause itself.
    Unknown(String),
    /// The fault of the member's certificate, or that the member rejects ours.
    CertificateMismatch(&'static str),
}

// === impl Reason ===

impl Reason {
    pub fn unknown(what: impl fmt::Display) -> Self {
        Self::Unknown(what.to_string())
    }

    /// The reason why there is no connection. `None` if nothing was tried, because too many earlier
    /// dials failed or the cluster was removed.
    pub fn of_dial(error: &ConnectError) -> Option<Self> {
        Some(match error {
            ConnectError::CircuitOpen(_) | ConnectError::Unregistered { .. } => return None,
            error if error.is_timeout() => Self::ConnectionTimeout,
            ConnectError::Dial(error) => Self::dialling(dial(error)),
            ConnectError::Proxy(error) => Self::dialling(proxy(error)),
            ConnectError::Tunnel { source, .. } => Self::dialling(source.in_short()),
            ConnectError::Tls { source, .. } => Self::of_tls(source),
            ConnectError::TlsTimeout { .. } => Self::ConnectionTimeout,
            ConnectError::NoHttp1 { .. } | ConnectError::Http2 { .. } | ConnectError::NoStreams { .. } => {
                Self::dialling("protocol")
            }
            ConnectError::Exhausted { .. } => Self::dialling("too many connections"),
            ConnectError::Nowhere(failures) => return failures.iter().filter_map(Self::of_dial).max(),
        })
    }

    fn dialling(what: &str) -> Self {
        Self::Unknown(format!("dial tcp: {what}"))
    }

    fn of_tls(error: &io::Error) -> Self {
        match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(error)) => Self::CertificateMismatch(certificate(error)),
            Some(rustls::Error::NoCertificatesPresented) => Self::CertificateMismatch("no certificate"),
            Some(rustls::Error::AlertReceived(alert)) if is_of_certificate(*alert) => {
                Self::CertificateMismatch("client certificate rejected")
            }
            Some(rustls::Error::AlertReceived(_)) => Self::dialling("tls: refused by the member"),
            Some(_) => Self::dialling("tls: protocol"),
            None => Self::dialling("tls: connection closed"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionTimeout => f.write_str("ConnectionTimeout"),
            Self::Unknown(what) => write!(f, "Unknown: {what}"),
            Self::CertificateMismatch(what) => write!(f, "CertificateMismatch: {what}"),
        }
    }
}

fn dial(error: &DialError) -> &'static str {
    match error {
        DialError::Resolve { .. } | DialError::NoAddress { .. } => "dns",
        DialError::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => "refused",
        DialError::Connect { .. } => "unreachable",
        DialError::Timeout { .. } | DialError::Silence { .. } => "timeout",
    }
}

fn proxy(error: &ProxyError) -> &'static str {
    match &error.refusal {
        Refusal::Unreachable(_) => "proxy: unreachable",
        Refusal::Tls(_) | Refusal::Name => "proxy: tls",
        Refusal::Timeout => "proxy: timeout",
        Refusal::CredentialsWanted | Refusal::CredentialsRefused => "proxy: credentials",
        Refusal::Status { .. } | Refusal::Socks(_) => "proxy: refused",
        Refusal::Closed | Refusal::Broken(_) => "proxy: connection closed",
        Refusal::Malformed { .. } | Refusal::TooLarge(_) => "proxy: protocol",
    }
}

fn certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "not yet valid",
        // A CA with the registered one's name but another key, as after its rotation.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "unknown issuer",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => "wrong name",
        CertificateError::Revoked => "revoked",
        CertificateError::BadEncoding => "malformed",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => "not for servers",
        _ => "not accepted",
    }
}

/// Whether the alert means that the peer rejects our certificate (RFC 8446 §6.2).
fn is_of_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls_pki_types::UnixTime;

    use super::*;

    fn text(error: &ConnectError) -> String {
        Reason::of_dial(error).map_or_else(String::new, |reason| reason.to_string())
    }

    fn tls(error: rustls::Error) -> ConnectError {
        let source = io::Error::new(io::ErrorKind::InvalidData, error);
        ConnectError::Tls { address: "member.example:6443".into(), source, advice: "" }
    }

    fn connect(kind: io::ErrorKind) -> ConnectError {
        DialError::Connect { address: "192.0.2.7:6443".into(), source: kind.into() }.into()
    }

    fn refusal(refusal: Refusal) -> ConnectError {
        ProxyError { destination: "192.0.2.7:6443".into(), proxy: "http://proxy:3128".into(), refusal }.into()
    }

    #[test]
    fn an_expired_certificate_is_the_same_news_however_long_ago_it_expired() {
        let expired = |time| {
            let [time, not_after] = [time, 100].map(|seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
            tls(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }))
        };
        assert_eq!(text(&expired(200)), "CertificateMismatch: expired");
        assert_eq!(text(&expired(201)), text(&expired(200)));
    }

    #[test]
    fn reasons_name_the_kind_of_failure_and_nothing_that_varies() {
        let refused = Refusal::Status { status: 403, reason: "request 1729 denied".into() };
        for (error, expected) in [
            (tls(CertificateError::UnknownIssuer.into()), "CertificateMismatch: unknown issuer"),
            (tls(CertificateError::NotValidForName.into()), "CertificateMismatch: wrong name"),
            (
                tls(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)),
                "CertificateMismatch: client certificate rejected",
            ),
            (
                tls(rustls::Error::AlertReceived(AlertDescription::InternalError)),
                "Unknown: dial tcp: tls: refused by the member",
            ),
            (connect(io::ErrorKind::ConnectionRefused), "Unknown: dial tcp: refused"),
            (connect(io::ErrorKind::HostUnreachable), "Unknown: dial tcp: unreachable"),
            (connect(io::ErrorKind::TimedOut), "ConnectionTimeout"),
            (DialError::NoAddress { host: "h".into() }.into(), "Unknown: dial tcp: dns"),
            (DialError::Silence { destination: "h:1".into(), tried: "all".into() }.into(), "ConnectionTimeout"),
            (refusal(refused), "Unknown: dial tcp: proxy: refused"),
            (refusal(Refusal::Timeout), "ConnectionTimeout"),
        ] {
            assert_eq!(text(&error), expected, "{error}");
        }
    }

    #[test]
    fn the_order_of_places_makes_no_difference() {
        let places = || [connect(io::ErrorKind::ConnectionRefused), tls(CertificateError::UnknownIssuer.into())];
        let [a, b] = places();
        let [c, d] = places();
        let expected = "CertificateMismatch: unknown issuer";
        assert_eq!(text(&ConnectError::Nowhere(vec![a, b])), expected);
        assert_eq!(text(&ConnectError::Nowhere(vec![d, c])), expected);
    }
}
