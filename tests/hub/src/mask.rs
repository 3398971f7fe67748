//! Masks what differs between two equal runs in kubectl's output: ages, times, uids, resource
//! versions, column widths.

/// `text` with what varies replaced by `<age>`, `<time>`, `<uid>`, `<version>`, and runs of spaces
/// by one space.
///
/// `names` are replaced as well: pairs of a text and its replacement.
pub fn mask(text: &str, names: &[(&str, &str)]) -> String {
    let mut masked = String::with_capacity(text.len());
    for line in text.lines() {
        let mut line = line.to_owned();
        for (name, replacement) in names {
            line = line.replace(name, replacement);
        }
        let indentation = line.len() - line.trim_start().len();
        masked.push_str(&line[..indentation]);
        let mut previous = "";
        let words: Vec<&str> =
            line.split_whitespace().map(|word| mask_word(std::mem::replace(&mut previous, word), word)).collect();
        masked.push_str(&words.join(" "));
        masked.push('\n');
    }
    masked
}

fn mask_word<'a>(previous: &str, word: &'a str) -> &'a str {
    let bare = word.trim_matches(|c: char| "\"',()".contains(c));
    match previous.trim_matches('"') {
        "resourceVersion:" | "resourceVersion\":" => return "<version>",
        _ => {}
    }
    if is_age(bare) {
        "<age>"
    } else if is_time(bare) {
        "<time>"
    } else if is_uid(bare) {
        "<uid>"
    } else {
        word
    }
}

/// `12s`, `3m4s`, `2d`, `<unknown>`: how kubectl prints an age (apimachinery
/// `duration.HumanDuration`).
fn is_age(word: &str) -> bool {
    let mut digits = 0;
    let mut units = 0;
    for byte in word.bytes() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b's' | b'm' | b'h' | b'd' | b'y' if digits > 0 => {
                digits = 0;
                units += 1;
            }
            _ => return false,
        }
    }
    digits == 0 && units > 0
}

/// RFC 3339 as Kubernetes writes it: `2026-01-02T03:04:05Z`, with or without a fraction.
fn is_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 20 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[10] == b'T' && bytes[13] == b':'
}

fn is_uid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_the_widths_they_cause_are_masked() {
        let (young, old) = ("NAME   READY   AGE\nweb-0  1/1     9s\n", "NAME    READY   AGE\nweb-0   1/1     3m59s\n");
        assert_eq!(mask(young, &[]), mask(old, &[]));
        assert_eq!(mask(young, &[]), "NAME READY AGE\nweb-0 1/1 <age>\n");
    }

    #[test]
    fn names_states_and_numbers_are_kept() {
        let text = "pod/sm-5 1/1 Running 0 10.99.0.1 5432/TCP 64 256Gi\n";
        assert_eq!(mask(text, &[]), text);
    }

    #[test]
    fn object_metadata_is_masked_and_its_shape_kept() {
        let text = "  creationTimestamp: \"2026-01-02T03:04:05Z\"\n  resourceVersion: \"81\"\n  \
                    uid: 3d5a1d2e-9f3c-4a77-8a53-0123456789ab\n  namespace: at-hub\n";
        assert_eq!(
            mask(text, &[("at-hub", "<namespace>")]),
            "  creationTimestamp: <time>\n  resourceVersion: <version>\n  uid: <uid>\n  namespace: <namespace>\n"
        );
    }
}
