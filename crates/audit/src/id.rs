//! The id of one request in the audit logs of all servers that it passes.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};

/// The header that contains the hub's audit id of a request through its aggregator
/// (`auditinternal.HeaderAuditID`).
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Longest id accepted from a request, in bytes. A UUID has 36, and kube-apiserver cuts longer ids
/// than this (`pkg/endpoints/filters/audit_init.go`).
const LONGEST: usize = 64;

/// An audit id: the caller's choice or a random UUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditId(Arc<str>);

// === impl AuditId ===

impl AuditId {
    /// The id that the request contains, if it is one line of printable ASCII of a valid length.
    /// Otherwise a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(&AUDIT_ID).and_then(|value| value.to_str().ok());
        let sane = |id: &&str| (1..=LONGEST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        given.filter(sane).map_or_else(Self::random, |id| Self(Arc::from(id)))
    }

    /// A random (version 4) UUID (RFC 9562 §5.4).
    fn random() -> Self {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).expect("the operating system has randomness");
        let value = u128::from_be_bytes(bytes) & !(0xf << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62);
        let text = format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            value >> 96,
            value >> 80 & 0xffff,
            value >> 64 & 0xffff,
            value >> 48 & 0xffff,
            value & 0xffff_ffff_ffff
        );
        Self(Arc::from(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn given(value: &'static [u8]) -> AuditId {
        AuditId::of(&HeaderMap::from_iter([(AUDIT_ID, HeaderValue::from_bytes(value).expect("a header value"))]))
    }

    fn is_uuid(id: &AuditId) -> bool {
        let lengths: Vec<_> = id.as_str().split('-').map(str::len).collect();
        let (version, variant) = (id.as_str().as_bytes()[14], id.as_str().as_bytes()[19]);
        lengths == [8, 4, 4, 4, 12] && version == b'4' && matches!(variant, b'8' | b'9' | b'a' | b'b')
    }

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        assert_eq!(given(b"0c1f3a0e-8f5e-4e51-b2f0-0f1d2c3b4a59").as_str(), "0c1f3a0e-8f5e-4e51-b2f0-0f1d2c3b4a59");
        for odd in [&b""[..], b"two words", b"caf\xc3\xa9", &[b'x'; 65]] {
            assert!(is_uuid(&given(odd)), "{odd:?}");
        }
    }

    #[test]
    fn requests_without_an_id_get_one_each() {
        let (one, other) = (AuditId::of(&HeaderMap::new()), AuditId::of(&HeaderMap::new()));
        assert!(is_uuid(&one) && is_uuid(&other), "{one} {other}");
        assert_ne!(one, other);
    }
}
