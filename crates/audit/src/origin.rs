//! The origin of a request as its headers claim it, in bounded form.

use std::net::IpAddr;

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
/// Most addresses kept per request. Keeps the last ones, because the nearer a proxy is, the more it
/// can be trusted.
const MOST_ADDRESSES: usize = 32;
/// Most bytes kept of a `User-Agent`, and the marker of a cut (`audit.maxUserAgentLength` of
/// `k8s.io/apiserver`).
const LONGEST_AGENT: usize = 1024;
const CUT: &str = "...TRUNCATED";

/// The addresses on the path of a request, starting with the client's, in the order of
/// `k8s.io/apimachinery/pkg/util/net.SourceIPs`: the first `X-Forwarded-For` line, `X-Real-Ip`
/// unless it is among those, and `peer`, the only one that cannot be forged.
pub fn source_ips(headers: &HeaderMap, peer: IpAddr) -> Vec<IpAddr> {
    let peer = peer.to_canonical();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let read = |part: &str| part.trim().parse::<IpAddr>().ok().map(|address| address.to_canonical());
    let mut chain: Vec<_> =
        text(FORWARDED_FOR).into_iter().flat_map(|line| line.rsplit(',')).filter_map(read).collect();
    chain.truncate(MOST_ADDRESSES - 2);
    chain.reverse();
    chain.extend(text(REAL_IP).and_then(read).filter(|address| !chain.contains(address)));
    if chain.last() != Some(&peer) {
        chain.push(peer);
    }
    chain
}

/// The `User-Agent`, cut if it is too long. Bytes that are not UTF-8 become U+FFFD.
pub fn user_agent(headers: &HeaderMap) -> Box<str> {
    let Some(agent) = headers.get(USER_AGENT) else { return Box::default() };
    if agent.len() <= LONGEST_AGENT {
        return String::from_utf8_lossy(agent.as_bytes()).into();
    }
    format!("{}{CUT}", String::from_utf8_lossy(&agent.as_bytes()[..LONGEST_AGENT])).into()
}

/// `text`, cut at `longest` bytes and marked if it is longer.
pub(crate) fn cut(text: &str, longest: usize) -> Box<str> {
    if text.len() <= longest {
        text.into()
    } else {
        format!("{}{CUT}", &text[..text.floor_char_boundary(longest)]).into()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PEER: &str = "10.0.0.9";

    fn ips(forwarded: &'static str, real: Option<&'static str>) -> Vec<String> {
        let mut headers = HeaderMap::from_iter([(FORWARDED_FOR, HeaderValue::from_static(forwarded))]);
        headers.extend(real.map(|real| (REAL_IP, HeaderValue::from_static(real))));
        source_ips(&headers, PEER.parse().unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_chain_ends_with_the_peer() {
        assert_eq!(ips("192.0.2.1, nonsense,  2001:db8::1", None), ["192.0.2.1", "2001:db8::1", PEER]);
        assert_eq!(ips("192.0.2.1, 10.0.0.9", None), ["192.0.2.1", PEER]);
        assert_eq!(ips("192.0.2.1", Some("192.0.2.1")), ["192.0.2.1", PEER]);
        assert_eq!(ips("192.0.2.1", Some("192.0.2.7")), ["192.0.2.1", "192.0.2.7", PEER]);
        assert_eq!(
            source_ips(&HeaderMap::new(), "::ffff:10.0.0.9".parse().unwrap()),
            [PEER.parse::<IpAddr>().unwrap()]
        );
    }

    #[test]
    fn a_long_chain_loses_its_first_addresses() {
        let long = (0..5000).map(|number| format!("192.0.2.{}", number % 250)).collect::<Vec<_>>().join(",");
        let headers = HeaderMap::from_iter([(FORWARDED_FOR, HeaderValue::from_str(&long).unwrap())]);
        let chain = source_ips(&headers, PEER.parse().unwrap());
        assert!(chain.len() <= MOST_ADDRESSES, "{}", chain.len());
        assert_eq!(chain[chain.len() - 2].to_string(), "192.0.2.249");
    }

    #[test]
    fn a_long_agent_is_cut() {
        let agent = |value: Vec<u8>| {
            user_agent(&HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_bytes(&value).unwrap())]))
        };
        assert_eq!(&*agent(b"kubectl/v1.33".to_vec()), "kubectl/v1.33");
        assert_eq!(agent(vec![b'x'; 100_000]).len(), LONGEST_AGENT + CUT.len());
        assert_eq!(&*agent(b"\xff".to_vec()), "\u{fffd}");
    }
}
