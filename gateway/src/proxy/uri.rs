//! The member's URI: its base path, then the client's bytes as they came.

use api::secret::Endpoint;
use bytes::{BufMut, Bytes, BytesMut};
use http::Uri;
use http::uri::PathAndQuery;

use crate::error::Error;

/// `base path + path[remainder..] + ?query`, nothing decoded, cleaned or reordered. An empty
/// remainder becomes `/`.
pub fn rewrite(endpoint: &Endpoint, uri: &Uri, remainder: usize) -> Result<PathAndQuery, Error> {
    let sent = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let path_ends = uri.path().len();
    let rest = &sent[remainder.min(sent.len())..];
    let mut target = BytesMut::with_capacity(endpoint.base_path.len() + 1 + rest.len());
    target.put_slice(endpoint.base_path.as_bytes());
    if remainder >= path_ends {
        target.put_u8(b'/');
    }
    target.put_slice(rest.as_bytes());
    let target: Bytes = target.freeze();
    PathAndQuery::from_maybe_shared(target).map_err(|_| Error::BadRequest("the proxied path is not a valid URL path"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c/proxy";

    fn rewritten(base: &str, rest: &str) -> String {
        let endpoint = Endpoint::parse(&format!("https://member:6443{base}"), false).unwrap();
        let uri: Uri = format!("{PREFIX}{rest}").parse().unwrap();
        rewrite(&endpoint, &uri, PREFIX.len()).unwrap().to_string()
    }

    #[test]
    fn the_empty_remainder_is_the_root() {
        assert_eq!(rewritten("", ""), "/");
        assert_eq!(rewritten("", "?watch=1"), "/?watch=1");
        assert_eq!(rewritten("/base", "?a"), "/base/?a");
        assert_eq!(rewritten("/base/", "/"), "/base/");
    }

    #[test]
    fn bytes_survive() {
        for rest in ["//a", "/a%2Fb", "/a%20b+c", "/a/?b=2&a=1&b=&x;y&z=%20+", "/a/", "/a?", "/%E4?q=%"] {
            assert_eq!(rewritten("", rest), rest);
            assert_eq!(rewritten("/base/x", rest), format!("/base/x{rest}"));
        }
    }

    proptest! {
        #[test]
        fn what_follows_the_prefix_is_what_the_member_sees(rest in "/[!$-;=?-Z_a-z~]{0,40}") {
            prop_assert_eq!(rewritten("", &rest), rest.clone());
            prop_assert_eq!(rewritten("/b", &rest), format!("/b{rest}"));
        }
    }
}
