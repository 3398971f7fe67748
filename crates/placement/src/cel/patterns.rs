//! Regular expressions with RE2's meaning. Matching takes time in proportion to the text.

use regex::{Regex, RegexBuilder};

/// Longest pattern, in bytes.
const PATTERN: usize = 1024;
/// Limits of a compiled pattern, in bytes, which also bound the time that compiling takes. The
/// least that it fits in counts as its size, which the crate does not report.
const SIZES: [usize; 6] = [256, 1024, 4 * 1024, 8 * 1024, 16 * 1024, 32 * 1024];
/// Limits of a pattern that is compiled for each evaluation: few, because each attempt takes time.
const SMALL: [usize; 2] = [1024, 16 * 1024];
/// Bytes of text times bytes of compiled pattern that are matched in a step. Matching takes up to
/// about 50 ns for one byte of text and one KiB of pattern, if its states do not repeat.
const MATCHING: usize = 512;
/// Most bytes that matching may cache.
const CACHE: usize = 1024 * 1024;
/// Deepest nesting of brackets in a pattern.
const DEPTH: u32 = 50;

/// RE2's classes are ASCII; the crate's are Unicode.
const CLASSES: [(char, &str); 8] = [
    ('d', "[0-9]"),
    ('D', "[^0-9]"),
    ('w', "[0-9A-Za-z_]"),
    ('W', "[^0-9A-Za-z_]"),
    ('s', r"[\t\n\x0c\r ]"),
    ('S', r"[^\t\n\x0c\r ]"),
    ('b', r"(?-u:\b)"),
    ('C', r"(?s:.)"),
];

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    pub regex: Regex,
    /// In bytes, rounded up.
    size: usize,
}

// === impl Pattern ===

impl Pattern {
    /// Steps that matching `text` may take: in proportion to its length and to the pattern's size,
    /// which a few characters can make large (`(a{30}){30}`).
    pub fn steps(&self, text: &str) -> usize {
        1 + text.len().saturating_mul(self.size) / MATCHING
    }
}

/// Compiles a constant pattern, once, with its expression.
///
/// # Errors
///
/// Fails if it is not a regular expression, or too large.
pub fn compiled(pattern: &str) -> Result<Pattern, String> {
    within(pattern, &SIZES)
}

/// Compiles a pattern that is not a constant, for each evaluation.
///
/// # Errors
///
/// Fails if it is not a regular expression, or too large for that.
pub fn compiled_small(pattern: &str) -> Result<Pattern, String> {
    within(pattern, &SMALL)
}

fn within(pattern: &str, sizes: &[usize]) -> Result<Pattern, String> {
    if pattern.len() > PATTERN {
        return Err(format!("a pattern is longer than {PATTERN} bytes"));
    }
    if folds_beyond_ascii(pattern) {
        return Err("the flag i is of ASCII: leave other characters and their classes out".to_owned());
    }
    let mut builder = RegexBuilder::new(&of_ascii(pattern));
    builder.dfa_size_limit(CACHE).nest_limit(DEPTH);
    let mut why = String::new();
    for size in sizes {
        match builder.size_limit(*size).build() {
            Ok(regex) => return Ok(Pattern { regex, size: *size }),
            Err(error) => why = error.to_string().replace('\n', " "),
        }
        // A syntax error stays one, with any size.
        if !why.contains("size limit") {
            break;
        }
    }
    Err(format!("error parsing regexp: {why}"))
}

/// Whether a pattern folds case beyond ASCII. Folding the case of a range visits all its characters
/// before any size limit is checked: a millisecond for a pattern of eight bytes.
fn folds_beyond_ascii(pattern: &str) -> bool {
    let mut groups = pattern.split("(?").skip(1);
    let flags = |group: &str| group.chars().take_while(char::is_ascii_alphabetic).any(|flag| flag == 'i');
    let is_beyond = || !pattern.is_ascii() || [r"\p", r"\P", r"\x", r"\u", r"\U"].iter().any(|it| pattern.contains(it));
    groups.any(flags) && is_beyond()
}

fn of_ascii(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(letter) = rest.next() else {
            out.push(c);
            break;
        };
        match CLASSES.iter().find(|(known, _)| *known == letter) {
            Some((_, class)) => out.push_str(class),
            None => out.extend([c, letter]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_of_ascii() {
        let is_match = |pattern: &str, text: &str| compiled(pattern).unwrap().regex.is_match(text);
        assert!(is_match(r"^\d+$", "12") && !is_match(r"^\d$", "٣"));
        assert!(is_match(r"^[\w.-]+$", "a_1.b-") && !is_match(r"^\w$", "ä"));
        assert!(is_match(r"\bb\b", "a b c") && is_match(r"^\\d$", r"\d"));
    }

    #[test]
    fn large_patterns_are_refused() {
        assert!(compiled("(((a{100}){100}){100}){100}").is_err());
        assert!(compiled(&"a".repeat(PATTERN + 1)).is_err());
        assert!(compiled("[a-z]{400}").is_ok() && compiled_small("[a-z]{400}").is_err());
        assert!(compiled("[a-z]{900}").is_err());
        assert!(compiled_small(r"^[\w.-]+-(eu|us)-\d{1,3}$").is_ok());
        assert!(compiled("(?i)eu-[a-z]+").unwrap().regex.is_match("EU-West") && compiled("é").is_ok());
        for folded in ["(?i)[!-\u{10ffff}]", r"(?si)[\x{80}-\x{10ffff}]", r"a(?i:\pL)"] {
            assert!(compiled(folded).is_err(), "{folded}");
        }
        assert!(compiled(&"(".repeat(200)).is_err() && compiled("a(").is_err());
    }

    #[test]
    fn matching_is_charged_by_what_was_compiled() {
        let steps = |pattern: &str| compiled(pattern).unwrap().steps(&"a".repeat(1000));
        assert!(steps("^e") < 1_000);
        let (few, many) = (steps("a{2}"), steps("(a{20}){20}"));
        assert!(many > 15 * few, "{few} {many}");
    }
}
