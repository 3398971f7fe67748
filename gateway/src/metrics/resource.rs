//! The resource a proxied path is about, as a metric's label.
//!
//! `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go` on borrowed text, the resource alone: this runs for every request. A
//! label is no decision, so an encoded path, which no client sends, is just none of the known ones.

/// Longest label taken from a path, in bytes: a DNS label, which a resource's name is.
const LONGEST: usize = 63;
/// The label of what is no name of a resource, or one too many.
pub const OTHER: &str = "other";

/// The resource of `path`, a member's; empty for a path that is about none, [`OTHER`] for what cannot be one.
pub fn label(path: &str) -> &str {
    let resource = resource(path);
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if resource.len() <= LONGEST && resource.bytes().all(plain) { resource } else { OTHER }
}

fn resource(path: &str) -> &str {
    let mut segments = segments(path.trim_matches('/'));
    let versioned = match segments.next() {
        Some("api") => segments.next(),
        Some("apis") => segments.next().and_then(|_| segments.next()),
        _ => None,
    };
    let first = versioned.and_then(|_| segments.next());
    let first = if let Some("watch" | "proxy") = first { segments.next() } else { first };
    if first != Some("namespaces") {
        return first.unwrap_or_default();
    }
    match segments.nth(1) {
        None | Some("status" | "finalize") => "namespaces",
        Some(resource) => resource,
    }
}

/// As `split('/')`, byte by byte: its search is made for long texts, and cost more than all the rest for these few short ones.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.bytes().position(|byte| byte == b'/');
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

#[cfg(test)]
mod tests {
    use api::access::{Attributes, ResourceAttributes};
    use api::route::member_attributes;
    use http::Method;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_resources_or_nothing_or_other() {
        for (path, expected) in [
            ("/api/v1/namespaces/ns/pods/p/log", "pods"),
            ("/api/v1/pods", "pods"),
            ("/apis/apps/v1/namespaces/ns/deployments/", "deployments"),
            ("/api/v1/watch/namespaces/ns/services", "services"),
            ("/api/v1/namespaces", "namespaces"),
            ("/api/v1/namespaces/ns", "namespaces"),
            ("/api/v1/namespaces/ns/finalize", "namespaces"),
            ("/api/v1/nodes/n/proxy/x", "nodes"),
            ("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c/proxy/api/v1/pods", "clustergateways"),
            ("", ""),
            ("/version", ""),
            ("/api/v1", ""),
            ("/apis/apps/v1", ""),
            ("/api/v1/%70ods", OTHER),
            ("/api/v1/Pods", OTHER),
            ("/api/v1/po\u{e4}ds", OTHER),
        ] {
            assert_eq!(label(path), expected, "{path}");
        }
        assert_eq!(label(&format!("/api/v1/{}", "x".repeat(64))), OTHER);
    }

    proptest! {
        #[test]
        fn a_label_is_what_an_audit_would_say(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("api"), Just("apis"), Just("v1"), Just("namespaces"), Just("watch"), Just("proxy"),
                    Just("status"), Just("pods"), Just("x"), Just(""),
                ],
                0..9,
            ),
        ) {
            let path = format!("/{}", parts.join("/"));
            let expected = match member_attributes(&Method::GET, &path, None, false) {
                Attributes::Resource(ResourceAttributes { resource, .. }) => resource.into_owned(),
                Attributes::NonResource { .. } => String::new(),
            };
            prop_assert_eq!(label(&path), expected, "{}", path);
        }
    }
}
