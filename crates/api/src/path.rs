//! What a path must not contain before it is joined to a member's base path.

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

#[cfg(test)]
mod tests {
    use super::has_dot_segment;

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
