//! Checks the member's part of a proxied path, which is forwarded unchanged.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Whether `raw` has a segment `.` or `..` after one percent-decode pass.
///
/// Splits segments on `/` and `\` alike, also on decoded ones, because we do not know what a
/// member's server or an intermediary takes as a separator. One pass is right: Kubernetes decodes
/// once, so `%252e` reaches it as the text `%2e`.
pub fn has_dot_segment(raw: &str) -> bool {
    // Most paths end here. Without early returns, and with a `u8` instead of a `bool`, the compiler
    // can process 16 bytes or more at once.
    if raw.bytes().fold(0, |found: u8, byte| found | u8::from(byte == b'.') | u8::from(byte == b'%')) == 0 {
        return false;
    }
    // Number of dots, while the segment has no other characters.
    let mut dots = Some(0_u8);
    for byte in percent_decode(raw.as_bytes()) {
        match byte {
            b'/' | b'\\' if matches!(dots, Some(1 | 2)) => return true,
            b'/' | b'\\' => dots = Some(0),
            b'.' => dots = dots.filter(|count| *count < 2).map(|count| count + 1),
            _ => dots = None,
        }
    }
    matches!(dots, Some(1 | 2))
}

/// Whether `raw` has a segment that lets a request act on a workload instead of reading: `exec`,
/// `attach` and `portforward` of pods, and `proxy` of pods, services and nodes. Anything may be
/// behind `proxy`, including a kubelet's own exec.
///
/// Errs towards true. The position of the segment does not matter, because a member, or a proxy in
/// front of it, may collapse the path that we forward unchanged.
pub fn may_act(raw: &str) -> bool {
    has_segment(raw, &[b"exec", b"attach", b"portforward", b"proxy"])
}

/// Whether `raw` has a segment `proxy`. A pod, Service or kubelet behind it may respond instead of
/// the member. Errs towards true, like [`may_act`].
pub fn is_behind_proxy(raw: &str) -> bool {
    // Most paths end here, as in `has_dot_segment`: each proxied request is asked.
    let may_be = |byte: u8| u8::from(byte == b'x') | u8::from(byte == b'X') | u8::from(byte == b'%');
    raw.bytes().fold(0, |found: u8, byte| found | may_be(byte)) != 0 && has_segment(raw, &[b"proxy"])
}

fn has_segment(raw: &str, names: &[&[u8]]) -> bool {
    let decoded: Cow<'_, [u8]> = percent_decode(raw.as_bytes()).into();
    let named = |segment: &[u8]| names.iter().any(|name| segment.eq_ignore_ascii_case(name));
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(named)
}

#[cfg(test)]
mod tests {
    use super::{has_dot_segment, is_behind_proxy, may_act};

    #[test]
    fn what_acts_on_a_workload_is_seen_in_every_spelling() {
        for raw in [
            "/api/v1/namespaces/ns/pods/p/exec",
            "/api/v1/namespaces/ns/pods/p/attach/",
            "//api/v1/namespaces/ns//pods/p//portforward",
            "/api/v1/namespaces/ns/pods/p/%65xec",
            "/api/v1/namespaces/ns/pods%2Fp%2Fexec",
            "/api/v1/nodes/n/proxy/exec/ns/p/c",
            "/api/v1/nodes/n/proxy/portForward/ns/p",
            "/api/v1/namespaces/ns/services/s/proxy/socket",
        ] {
            assert!(may_act(raw), "{raw}");
        }
        for raw in ["", "/api/v1/namespaces/ns/pods", "/api/v1/namespaces/ns/pods/p/log", "/apis/x/v1/executions/e"] {
            assert!(!may_act(raw), "{raw}");
        }
    }

    #[test]
    fn workloads_are_behind_a_proxy_in_every_spelling() {
        for raw in [
            "/api/v1/nodes/n/proxy",
            "/api/v1/namespaces/ns/services/s/%70roxy/x",
            "/api/v1/proxy/nodes/n",
            "/nodes/n/PROXY",
        ] {
            assert!(is_behind_proxy(raw), "{raw}");
        }
        for raw in ["", "/api/v1/namespaces/ns/pods/p/exec", "/api/v1/namespaces/ns/configmaps/proxy-config"] {
            assert!(!is_behind_proxy(raw), "{raw}");
        }
    }

    #[test]
    fn finds_dot_segments_in_every_spelling() {
        for raw in [
            "/..",
            "/.",
            "/a/../b",
            "/a/./b",
            "/%2e%2e/b",
            "/%2E./b",
            "/..%2fb",
            "/a%2f..",
            "/\\..",
            "/..\\b",
            "/a%5c..%5Cb",
            "..",
            "//..",
            "/a/.%2e",
        ] {
            assert!(has_dot_segment(raw), "{raw}");
        }
    }

    #[test]
    fn leaves_other_dots_alone() {
        for raw in [
            "",
            "/",
            "//",
            "/...",
            "/a.b/..c/d..",
            "/%252e%252e/x",
            "/.hidden",
            "/v1/..;x",
            "/%",
            "/%2",
            "/%zz",
            "/apis/rbac.authorization.k8s.io/v1",
        ] {
            assert!(!has_dot_segment(raw), "{raw}");
        }
    }
}
