//! Any authority and any cluster's name: an accepted one reads the same when written, and fits
//! where it is sent.

use tunnel::{ClusterName, Destination};

pub const WORDS: &[&str] =
    &["[", "::1", "]", ":443", ":", ".", "10.0.0.1", "%25eth0", "@", "+", "kubernetes.default.svc", "é", "..", "_"];

pub fn check(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    if let Ok(destination) = Destination::parse(input) {
        let again = destination.to_string();
        assert_eq!(Destination::parse(&again), Ok(destination.clone()));
        let authority: http::uri::Authority = again.parse().expect("an authority");
        assert_eq!(authority.port_u16(), Some(destination.port()));
        assert_eq!(authority.host().trim_matches(['[', ']']), destination.host());
    }
    if let Ok(cluster) = ClusterName::parse(input) {
        assert_eq!(cluster.as_str(), input);
        assert!(input.len() <= 253 && !input.contains("..") && !input.bytes().any(|byte| byte.is_ascii_uppercase()));
        http::HeaderValue::from_str(input).expect("a header's value");
    }
}
