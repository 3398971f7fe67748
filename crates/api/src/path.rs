//! What the member's part of a proxied path says, as far as we must know before forwarding it untouched.

use percent_encoding::percent_decode;

/// Whether `raw`, after one percent-decode pass, has a segment `.` or `..`.
///
/// Segments are split on `/` and `\` alike, decoded ones included, since what a member's server or an intermediary takes for a
/// separator is unknown. One pass is right: Kubernetes decodes once, so `%252e` reaches it as the text `%2e`.
pub fn has_dot_segment(raw: &str) -> bool {
    if !raw.contains(['.', '%']) {
        return false;
    }
    // Number of dots if the segment so far has nothing else.
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

/// Whether `raw` names `pods/<name>/exec`, `attach` or `portforward`, for which a WebSocket's GET is no read (KEP-4006).
///
/// Errs towards true: empty segments are skipped and more segments may follow, because a member, or what stands before it, may
/// collapse what we forward as it is.
pub fn acts_on_pod(raw: &str) -> bool {
    let decoded: Vec<u8> = percent_decode(raw.as_bytes()).collect();
    let segments: Vec<&[u8]> = decoded.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty()).collect();
    segments.windows(3).any(|window| window[0] == b"pods" && matches!(window[2], b"exec" | b"attach" | b"portforward"))
}

#[cfg(test)]
mod tests {
    use super::{acts_on_pod, has_dot_segment};

    #[test]
    fn acting_on_a_pod_is_seen_in_every_spelling() {
        for raw in [
            "/api/v1/namespaces/ns/pods/p/exec",
            "/api/v1/namespaces/ns/pods/p/attach/",
            "//api/v1/namespaces/ns//pods/p//portforward",
            "/api/v1/namespaces/ns/pods/p/%65xec",
            "/api/v1/namespaces/ns/pods%2Fp%2Fexec",
        ] {
            assert!(acts_on_pod(raw), "{raw}");
        }
        for raw in
            ["", "/api/v1/namespaces/ns/pods/p/log", "/api/v1/namespaces/ns/pods/exec", "/apis/x/v1/podsets/p/exec"]
        {
            assert!(!acts_on_pod(raw), "{raw}");
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
