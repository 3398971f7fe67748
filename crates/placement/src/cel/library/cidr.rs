//! Kubernetes' networks in CIDR notation.

use std::net::IpAddr;

use ipnet::IpNet;

use super::ip::address;
use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Cidr, Int, Ip, Text};
use crate::cel::value::Value;

pub const OVERLOADS: &[Overload] = &[
    function("cidr", &[Text], Cidr, |_, arguments| match arguments {
        [Value::Text(text)] => network(text).map(Value::Cidr).ok_or_else(wrong),
        _ => Err(Failure::no_overload()),
    }),
    function("isCIDR", &[Text], Bool, |_, arguments| match arguments {
        [Value::Text(text)] => Ok(Value::Bool(network(text).is_some())),
        _ => Err(Failure::no_overload()),
    }),
    function("string", &[Cidr], Text, |_, arguments| of(arguments, |net| Value::text(net.to_string()))),
    method("containsIP", &[Cidr, Text], Bool, contains_ip_text),
    method("containsIP", &[Cidr, Ip], Bool, |_, arguments| match arguments {
        [Value::Cidr(net), Value::Ip(ip)] => Ok(Value::Bool(contains(net, *ip))),
        _ => Err(Failure::no_overload()),
    }),
    method("containsCIDR", &[Cidr, Text], Bool, |_, arguments| match arguments {
        [Value::Cidr(net), Value::Text(text)] => {
            network(text).map(|other| Value::Bool(holds(net, &other))).ok_or_else(wrong)
        }
        _ => Err(Failure::no_overload()),
    }),
    method("containsCIDR", &[Cidr, Cidr], Bool, |_, arguments| match arguments {
        [Value::Cidr(net), Value::Cidr(other)] => Ok(Value::Bool(holds(net, other))),
        _ => Err(Failure::no_overload()),
    }),
    method("ip", &[Cidr], Ip, |_, arguments| of(arguments, |net| Value::Ip(net.addr()))),
    method("masked", &[Cidr], Cidr, |_, arguments| of(arguments, |net| Value::Cidr(net.trunc()))),
    method("prefixLength", &[Cidr], Int, |_, arguments| of(arguments, |net| Value::Int(i64::from(net.prefix_len())))),
];

fn contains_ip_text<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Cidr(net), Value::Text(text)] = arguments else { return Err(Failure::no_overload()) };
    let ip = address(text).ok_or_else(|| Failure::error("no IP address"))?;
    Ok(Value::Bool(contains(net, ip)))
}

fn network(text: &str) -> Option<IpNet> {
    let net: IpNet = text.parse().ok()?;
    let length = text.rsplit('/').next().unwrap_or_default();
    let is_mapped = matches!(net.addr(), IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    let is_padded = length.len() > 1 && length.starts_with(['0', '+']);
    (!is_mapped && !is_padded).then_some(net)
}

fn wrong() -> Failure {
    Failure::error("no network address")
}

fn of<'a>(arguments: &[Value<'a>], part: fn(&IpNet) -> Value<'a>) -> Answer<'a> {
    match arguments {
        [Value::Cidr(net)] => Ok(part(net)),
        _ => Err(Failure::no_overload()),
    }
}

fn contains(net: &IpNet, ip: IpAddr) -> bool {
    net.contains(&ip)
}

/// Whether all of `other` is in `net`.
fn holds(net: &IpNet, other: &IpNet) -> bool {
    contains(net, other.addr()) && net.prefix_len() <= other.prefix_len()
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn networks_contain_addresses_and_networks() {
        holds(&[
            "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0')",
            "!isCIDR('10.0.0.0/08') && !isCIDR('::ffff:1.2.3.4/112')",
            "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
            "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/16'))",
            "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24')",
            "cidr('::/0').prefixLength() == 0 && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
        ]);
        fails(&["cidr('10.0.0.0').prefixLength() == 8", "cidr('10.0.0.0/8').containsIP('x')"]);
    }
}
