//! The cipher suites that a policy allows, by the names that Go and Kubernetes use.

use std::fmt;

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::version::TLS13;

/// The available cipher suites.
#[derive(Debug, Clone)]
pub struct Suites(pub(super) Vec<SupportedCipherSuite>);

/// Why a list of names is no choice of suites.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuitesError {
    #[error("{name:?} is not a known cipher suite; known are {}", known())]
    Unknown { name: String },
    #[error("none of the cipher suites is available; choose from {}", known())]
    NoneLeft,
}

/// Suites that Go's TLS has and ours does not, because they lack forward secrecy or an
/// authenticated cipher (`CipherSuites` and `InsecureCipherSuites` of Go's `crypto/tls`).
const ONLY_IN_GO: [&str; 16] = [
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
];

// === impl Suites ===

impl Suites {
    /// The suites with these `names`, and the names that exist elsewhere but not here.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(Self, Vec<String>), SuitesError> {
        let (mut chosen, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            match find(name) {
                Some(suite) => chosen.push(suite),
                None if ONLY_IN_GO.contains(&name) => missing.push(name.to_owned()),
                None => return Err(SuitesError::Unknown { name: name.to_owned() }),
            }
        }
        if chosen.is_empty() {
            return Err(SuitesError::NoneLeft);
        }
        let all = ALL_CIPHER_SUITES.iter().copied();
        let kept = |suite: &SupportedCipherSuite| suite.version() == &TLS13 || chosen.contains(suite);
        Ok((Self(all.filter(kept).collect()), missing))
    }

    pub(in crate::tls) fn to_vec(&self) -> Vec<SupportedCipherSuite> {
        self.0.clone()
    }
}

impl Default for Suites {
    fn default() -> Self {
        Self(crate::tls::provider().cipher_suites.clone())
    }
}

fn find(name: &str) -> Option<SupportedCipherSuite> {
    // Older Go releases write these two without the hash.
    let full = match name {
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" | "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => format!("{name}_SHA256"),
        _ => name.to_owned(),
    };
    ALL_CIPHER_SUITES.iter().copied().find(|suite| Name(*suite).to_string() == full)
}

fn known() -> String {
    ALL_CIPHER_SUITES.iter().map(|suite| Name(*suite).to_string()).collect::<Vec<_>>().join(", ")
}

/// A suite, displayed with its IANA name: rustls writes `TLS13_` instead of `TLS_`.
pub(super) struct Name(pub(super) SupportedCipherSuite);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.0.suite());
        write!(f, "TLS_{}", name.trim_start_matches("TLS13_").trim_start_matches("TLS_"))
    }
}
