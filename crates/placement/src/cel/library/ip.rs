//! Kubernetes' IP addresses: no zones, no IPv4 within IPv6.

use std::net::{IpAddr, Ipv6Addr};

use crate::cel::function::{Answer, Overload, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Int, Ip, Text};
use crate::cel::value::Value;

pub const OVERLOADS: &[Overload] = &[
    function("ip", &[Text], Ip, |_, arguments| match arguments {
        [Value::Text(text)] => address(text).map(Value::Ip).ok_or_else(|| Failure::error("no IP address")),
        _ => Err(Failure::no_overload()),
    }),
    function("isIP", &[Text], Bool, |_, arguments| match arguments {
        [Value::Text(text)] => Ok(Value::Bool(address(text).is_some())),
        _ => Err(Failure::no_overload()),
    }),
    function("ip.isCanonical", &[Text], Bool, |_, arguments| match arguments {
        [Value::Text(text)] => {
            let address = address(text).ok_or_else(|| Failure::error("no IP address"))?;
            Ok(Value::Bool(address.to_string() == **text))
        }
        _ => Err(Failure::no_overload()),
    }),
    function("string", &[Ip], Text, |_, arguments| of(arguments, |ip| Value::text(ip.to_string()))),
    method("family", &[Ip], Int, |_, arguments| of(arguments, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 }))),
    method("isUnspecified", &[Ip], Bool, |_, arguments| of(arguments, |ip| Value::Bool(ip.is_unspecified()))),
    method("isLoopback", &[Ip], Bool, |_, arguments| of(arguments, |ip| Value::Bool(ip.is_loopback()))),
    method("isLinkLocalMulticast", &[Ip], Bool, |_, arguments| {
        of(arguments, |ip| Value::Bool(is_link_local_multicast(ip)))
    }),
    method("isLinkLocalUnicast", &[Ip], Bool, |_, arguments| {
        of(arguments, |ip| Value::Bool(is_link_local_unicast(ip)))
    }),
    method("isGlobalUnicast", &[Ip], Bool, |_, arguments| of(arguments, |ip| Value::Bool(is_global_unicast(ip)))),
];

/// An address in the forms that Go's `netip.ParseAddr` reads.
pub fn address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let is_mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    (!is_mapped).then_some(address)
}

fn of<'a>(arguments: &[Value<'a>], part: fn(IpAddr) -> Value<'a>) -> Answer<'a> {
    match arguments {
        [Value::Ip(ip)] => Ok(part(*ip)),
        _ => Err(Failure::no_overload()),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(v6) => first(v6) & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !(is_broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
}

fn first(v6: Ipv6Addr) -> u16 {
    v6.segments()[0]
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn addresses_have_families_and_scopes() {
        holds(&[
            "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
            "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6 && string(ip('::0')) == '::'",
            "ip.isCanonical('127.0.0.1') && !ip.isCanonical('::FF') && ip('::FF') == ip('::ff')",
            "ip('0.0.0.0').isUnspecified() && ip('127.9.0.1').isLoopback() && ip('::1').isLoopback()",
            "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
            "ip('ff02::1').isLinkLocalMulticast() && ip('fe80::1').isLinkLocalUnicast() && ip('169.254.1.1').isLinkLocalUnicast()",
            "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast() && !ip('ff02::1').isGlobalUnicast()",
        ]);
        fails(&["ip('a').family() == 4", "ip.isCanonical('a')"]);
    }
}
