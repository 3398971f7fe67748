//! Any path and query: each proxied one has the canonical prefix, is reviewed under the cluster's
//! name, and cannot climb; for its member it has one label, whatever is percent-encoded in it.
//!
//! Input: one byte for the method, then `path?query`.

use api::access::{Attributes, Verb};
use api::route::{Dialect, MemberRequest, RawRequest, Route, Served, parse};
use http::Method;

use crate::spelling::METHODS;

pub const WORDS: &[&str] = &[
    "/apis/cluster.core.oam.dev/v1alpha1",
    "/clustergateways",
    "/virtualclusters",
    "/c1",
    "/proxy",
    "/health",
    "/",
    "//",
    "%2f",
    "%2e",
    "..",
    ".",
    "%5c",
    "\\",
    "?",
    "watch=1",
    "&",
    "/readyz",
    "/watch",
    "/namespaces/ns",
    ";",
];

pub fn check(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let method = &METHODS[usize::from(*first) % METHODS.len()];
    let upgrade = first & 0x80 != 0;
    let served = Served::default();
    let parsed = parse(RawRequest { method, path, query, upgrade: upgrade.then_some(Verb::Create), served });
    check_label(method, path, query, upgrade);
    let Route::Proxy(proxy) = parsed.route else { return };

    let prefix = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{}/proxy", proxy.cluster);
    assert_eq!((proxy.dialect, proxy.prefix), (Dialect::Native, &*prefix));
    let remainder = &path[prefix.len()..];
    assert!(remainder.is_empty() || remainder.starts_with('/'));
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(remainder).collect();
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        assert!(segment != b"." && segment != b"..");
    }
    let Attributes::Resource(attributes) = parsed.attributes else { panic!("reviewed as a path") };
    assert_eq!(attributes.name.as_deref(), Some(proxy.cluster.as_str()));
    assert_eq!((&*attributes.resource, &*attributes.subresource), ("clustergateways", "proxy"));
    assert_eq!(attributes.namespace, None);
}

/// Encodes every byte of the path, slashes among them: the member decodes once, so the label must
/// stay.
fn check_label(method: &Method, path: &str, query: Option<&str>, upgrade: bool) {
    let label = MemberRequest::read(method, path, query, upgrade).attributes();
    if path.is_empty() || path.contains('%') {
        return;
    }
    let encoded: String = path.bytes().map(percent_encoding::percent_encode_byte).collect();
    assert_eq!(MemberRequest::read(method, &encoded, query, upgrade).attributes(), label);
}
