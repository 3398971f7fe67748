//! Ranges of IP addresses. IPv4 written as IPv6 (`::ffff:0:0/96`, RFC 4291 §2.5.5.2) counts as
//! IPv4, because the kernel connects to the IPv4 address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

/// An address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr(IpNet);

/// Why a text is not a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    #[error("the part before '/' is not an IP address")]
    Address,
    #[error("the part behind '/' must be a number up to 32 for IPv4 and 128 for IPv6")]
    Prefix,
    #[error("bits are set beyond the prefix: {0} is the range's first address")]
    HostBits(IpAddr),
}

/// Length of the prefix before an IPv4 address written as IPv6.
const MAPPED_PREFIX: u8 = 96;

// === impl Cidr ===

impl Cidr {
    /// # Panics
    ///
    /// If `prefix` is more than 32.
    pub const fn v4(address: Ipv4Addr, prefix: u8) -> Self {
        Self(IpNet::new_assert(IpAddr::V4(address), prefix))
    }

    /// # Panics
    ///
    /// If `prefix` is more than 128.
    pub const fn v6(address: Ipv6Addr, prefix: u8) -> Self {
        Self(IpNet::new_assert(IpAddr::V6(address), prefix))
    }

    /// One address.
    pub fn single(address: IpAddr) -> Self {
        Self(address.to_canonical().into())
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Whether this range contains all of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    /// `address/prefix`. Bits beyond the prefix must be zero: `10.1.2.3/8` is more likely a mistake
    /// than intended.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let (address, prefix) = text.split_once('/').ok_or(CidrError::Prefix)?;
        let address: IpAddr = address.parse().map_err(|_| CidrError::Address)?;
        let digits = (1..=3).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| digits).ok_or(CidrError::Prefix)?;
        let written = IpNet::new(address, prefix).map_err(|_| CidrError::Prefix)?;
        if written.trunc() != written {
            return Err(CidrError::HostBits(written.network()));
        }
        match address.to_canonical() {
            IpAddr::V4(canonical) if address.is_ipv6() && prefix >= MAPPED_PREFIX => {
                Ok(Self::v4(canonical, prefix - MAPPED_PREFIX))
            }
            _ => Ok(Self(written)),
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, error) in [
            ("10.0.0.0", CidrError::Prefix),
            ("10.0.0.0/", CidrError::Prefix),
            ("10.0.0.0/33", CidrError::Prefix),
            ("10.0.0.0/+8", CidrError::Prefix),
            ("::/129", CidrError::Prefix),
            ("name/8", CidrError::Address),
            ("10.1.2.3/8", CidrError::HostBits([10, 0, 0, 0].into())),
        ] {
            assert_eq!(text.parse::<Cidr>(), Err(error), "{text}");
        }
    }

    #[test]
    fn ipv4_inside_ipv6_is_ipv4() {
        assert_eq!(cidr("::ffff:10.0.0.0/104"), cidr("10.0.0.0/8"));
        assert!(cidr("10.0.0.0/8").contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!cidr("::/0").contains("10.0.0.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn a_range_holds_exactly_the_addresses_with_its_first_bits(range: u32, prefix in 0u8..=32, address: u32) {
            let mask = if prefix == 0 { 0 } else { u32::MAX << (32 - prefix) };
            let written = format!("{}/{prefix}", Ipv4Addr::from_bits(range & mask));
            let held = cidr(&written).contains(Ipv4Addr::from_bits(address).into());
            prop_assert_eq!(held, range & mask == address & mask);
            prop_assert_eq!(cidr(&written).to_string(), written);
        }

        #[test]
        fn a_range_covers_what_it_holds_whole(range: u128, outer in 0u8..=128, inner in 0u8..=128) {
            let of = |prefix: u8| {
                let mask = if prefix == 0 { 0 } else { u128::MAX << (128 - prefix) };
                Cidr::v6(Ipv6Addr::from_bits(range & mask), prefix)
            };
            prop_assert_eq!(of(outer).covers(&of(inner)), outer <= inner);
        }
    }
}
