//! Syntax of Kubernetes' names and labels (apimachinery's `validation`).

/// A label of RFC 1123 of at most `most` bytes.
pub fn is_label(text: &str, most: usize) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() <= most && text.chars().all(is_inner) && has_ends(text, |c| c != '-')
}

/// A label of RFC 1035, which begins with a letter.
pub fn is_dns1035(text: &str, most: usize) -> bool {
    is_label(text, most) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Labels joined by dots, of at most 253 bytes.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| is_label(part, 253))
}

/// A label's key: a name, with or without a subdomain and `/` before it.
pub fn is_qualified(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// A label's value, which may be empty.
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.is_empty() || (text.len() <= 63 && text.chars().all(is_inner) && has_ends(text, |c| c.is_ascii_alphanumeric()))
}

fn has_ends(text: &str, is_end: impl Fn(char) -> bool) -> bool {
    text.starts_with(&is_end) && text.ends_with(&is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_other_texts() {
        assert!(is_label("a-1", 63) && !is_label("", 63) && !is_label("-a", 63) && !is_label("A", 63));
        assert!(is_dns1035("a1", 63) && !is_dns1035("1a", 63));
        assert!(is_subdomain("a.b-c.d") && !is_subdomain("a..b") && !is_subdomain(&"a".repeat(254)));
        assert!(is_qualified("a.io/b_c.D") && !is_qualified("a/b/c") && !is_qualified("a/") && !is_qualified("ü"));
        assert!(is_label_value("") && is_label_value("us-east.1_B") && !is_label_value("a b"));
        assert!(!is_label_value(&"a".repeat(64)) && !is_label_value("a-"));
    }
}
