//! Addresses of this machine, its link-local neighbours or its cloud.
//!
//! A rule about a larger network does not cover these: they need a rule about them alone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::cidr::Cidr;

/// "This host", which connects to loopback (RFC 6890).
const THIS_HOST: Cidr = Cidr::v4(Ipv4Addr::UNSPECIFIED, 8);
const V4: [Cidr; 6] = [
    Cidr::v4(Ipv4Addr::new(127, 0, 0, 0), 8),
    THIS_HOST,
    // Link-local: most clouds have their metadata there.
    Cidr::v4(Ipv4Addr::new(169, 254, 0, 0), 16),
    // Metadata at other addresses: Alibaba Cloud, Azure (WireServer), Oracle Cloud.
    Cidr::v4(Ipv4Addr::new(100, 100, 100, 200), 32),
    Cidr::v4(Ipv4Addr::new(168, 63, 129, 16), 32),
    Cidr::v4(Ipv4Addr::new(192, 0, 0, 192), 32),
];
const V6: [Cidr; 7] = [
    Cidr::v6(Ipv6Addr::LOCALHOST, 128),
    Cidr::v6(Ipv6Addr::UNSPECIFIED, 128),
    Cidr::v6(v6([0xfe80, 0, 0, 0]), 10),
    // Metadata among unique local addresses: AWS (with DNS, time, and the credentials of pods),
    // Google Cloud, Oracle Cloud, Scaleway.
    Cidr::v6(v6([0xfd00, 0xec2, 0, 0]), 32),
    Cidr::v6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    Cidr::v6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128),
    Cidr::v6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),
];

/// IPv6 addresses that a translator or a tunnel turns into IPv4, and the position of the IPv4
/// address: a connection ends up there.
struct Embedding {
    range: Cidr,
    /// The octets of the IPv4 address in each form.
    forms: &'static [[usize; 4]],
}

const EMBEDDINGS: [Embedding; 4] = [
    // The well-known prefix (RFC 6052 §2.1).
    Embedding { range: Cidr::v6(v6([0x64, 0xff9b, 0, 0]), 96), forms: &[[12, 13, 14, 15]] },
    // A network's own prefixes (RFC 8215), of any length that leaves room (RFC 6052 §2.2).
    Embedding {
        range: Cidr::v6(v6([0x64, 0xff9b, 1, 0]), 48),
        forms: &[[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]],
    },
    // 6to4 (RFC 3056 §2).
    Embedding { range: Cidr::v6(v6([0x2002, 0, 0, 0]), 16), forms: &[[2, 3, 4, 5]] },
    // "IPv4-compatible" (RFC 4291 §2.5.5.1).
    Embedding { range: Cidr::v6(Ipv6Addr::UNSPECIFIED, 96), forms: &[[12, 13, 14, 15]] },
];

/// The range that makes `address` special, if any. `address` is canonical.
pub(super) fn range_of(address: IpAddr) -> Option<Cidr> {
    let held = |ranges: &[Cidr]| ranges.iter().find(|range| range.contains(address)).copied();
    match address {
        IpAddr::V4(_) => held(&V4),
        IpAddr::V6(whole) => held(&V6).or_else(|| {
            let embedding = EMBEDDINGS.iter().find(|embedding| embedding.range.contains(address))?;
            embedding.is_special(whole).then_some(embedding.range)
        }),
    }
}

/// The address with these first groups.
const fn v6([a, b, c, d]: [u16; 4]) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)
}

// === impl Embedding ===

impl Embedding {
    fn is_special(&self, address: Ipv6Addr) -> bool {
        let octets = address.octets();
        self.forms.iter().any(|form| {
            let held = IpAddr::from(form.map(|at| octets[at]));
            // Of several forms, all but one read octets that are no address, mostly zeros. No
            // translator translates to "this host".
            range_of(held).is_some() && (self.forms.len() == 1 || !THIS_HOST.contains(held))
        })
    }
}
