//! The resource a request is about, as a metric's label.

/// Longest label taken from a path, in bytes: a DNS label, which a resource's name is.
const LONGEST: usize = 63;
/// The label of what is no name of a resource, or one too many.
pub const OTHER: &str = "other";

/// The label of `resource`, the caller's word: itself, empty if there is none, [`OTHER`] for what
/// cannot be one.
pub fn label(resource: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if resource.len() <= LONGEST && resource.bytes().all(plain) { resource } else { OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_resources_or_nothing_or_other() {
        for (resource, expected) in [
            ("pods", "pods"),
            ("clustergateways", "clustergateways"),
            ("", ""),
            ("%70ods", OTHER),
            ("Pods", OTHER),
            ("po\u{e4}ds", OTHER),
            ("pods\n", OTHER),
        ] {
            assert_eq!(label(resource), expected, "{resource}");
        }
        assert_eq!(label(&"x".repeat(LONGEST + 1)), OTHER);
    }
}
