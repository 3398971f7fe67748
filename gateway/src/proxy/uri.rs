//! The member's URI: its base path, then the client's bytes as they came.

use api::secret::Endpoint;
use bytes::{BufMut, Bytes, BytesMut};
use http::Uri;
use http::uri::PathAndQuery;

use crate::error::Error;

/// `base path + path[remainder..] + ?query`, nothing decoded, cleaned or reordered. An empty remainder becomes `/`.
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
