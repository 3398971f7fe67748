//! What a proxied request is for the member's API server, for a second review on the hub and for the audit log.
//!
//! A wrong answer is a hole: the review would allow one thing and the member do another. So this follows the member step by
//! step: `net/http` decodes the path once, then `requestinfo.go` reads it, and KEP-4006 makes opening a stream a `create`.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use super::request_info;
use crate::access::{Attributes, Verb};

/// The attributes of a proxied request as its member sees them.
///
/// `remainder` is the path as it is forwarded, still encoded, without the endpoint's base path; empty means `/`. `upgrade` says
/// whether the request asks to switch protocols, which of `pods/exec`, `pods/attach` and `pods/portforward` is a `create`
/// whatever its method (kube-apiserver since 1.35).
///
/// A path with an invalid escape is a non-resource path, as sent: good enough to be written down, and nothing to be allowed, see
/// [`can_be_decoded`]. Decoded bytes that are no UTF-8 become U+FFFD, as Go's JSON encoder has them in a review.
pub fn member_attributes(method: &Method, remainder: &str, query: Option<&str>, upgrade: bool) -> Attributes {
    let raw = if remainder.is_empty() { "/" } else { remainder };
    let Some(path) = decoded(raw) else {
        return Attributes::NonResource { path: Arc::from(raw), verb: request_info::lower_case(method) };
    };
    let mut attributes = request_info::attributes(method, &path, query);
    if let Attributes::Resource(resource) = &mut attributes
        && upgrade
        && (&*resource.group, &*resource.resource) == ("", "pods")
        && matches!(&*resource.subresource, "exec" | "attach" | "portforward")
    {
        resource.verb = Verb::Create;
    }
    attributes
}

/// Whether two hexadecimal digits follow each percent sign of `remainder`. A review must not speak of a path for which that is not so:
/// kube-apiserver refuses it before it looks at anything (`net/url`), but other servers, and proxies in front of any, mend it into
/// one that nobody has reviewed.
pub fn can_be_decoded(remainder: &str) -> bool {
    let mut escapes = remainder.split('%').skip(1).map(|rest| rest.as_bytes().get(..2));
    escapes.all(|digits| digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

/// `None` where the decoder of this crate would let an escape pass as text.
fn decoded(raw: &str) -> Option<Cow<'_, str>> {
    can_be_decoded(raw).then(|| percent_decode_str(raw).decode_utf8_lossy())
}

#[cfg(test)]
mod tests;
