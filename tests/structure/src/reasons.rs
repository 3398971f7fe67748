//! Reasons of conditions in sources: a reason that a user finds on an object must be on a page.

/// Least number of letters in a reason.
const SHORTEST: usize = 6;

/// The quoted words of a source that look like a reason or the type of a condition: letters and
/// digits only, starting with a capital. Its tests, which are at its end, are left out.
pub fn reasons(source: &str) -> Vec<&str> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in source.match_indices('"') {
        let rest = &source[at + 1..];
        let word = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        let is_quoted = rest[word.len()..].starts_with('"');
        if is_quoted && word.len() >= SHORTEST && word.starts_with(char::is_uppercase) && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_quotes_are_found_and_tests_left_out() {
        let source = r#"const A: &str = "ReasonOne"; told(x, "Reason two: {why}", "ReasonTwo"); kind("v1", "ReasonOne");
            #[cfg(test)] mod tests { "ReasonThree" }"#;
        assert_eq!(reasons(source), ["ReasonOne", "ReasonTwo"]);
    }
}
