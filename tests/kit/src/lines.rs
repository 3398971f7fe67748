//! Searches the log of a whole run, tens of megabytes. The standard library's search is compiled
//! with the crate that uses it: in tests without optimisation, where it takes a second of processor
//! time. That of `memchr`, which the dev profile in `Cargo.toml` optimises, takes some hundredths.

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

/// Whether `words` are anywhere in `text`.
pub fn has(text: &str, words: &str) -> bool {
    Finder::new(words).find(text.as_bytes()).is_some()
}

/// The lines of `text` that contain each of `words`. The first of them should be the rarest: each
/// line with it costs a few unoptimised steps.
pub fn with<'t>(text: &'t str, words: &[&str]) -> Vec<&'t str> {
    let Some((first, others)) = words.split_first() else { return text.lines().collect() };
    let first = Finder::new(*first);
    let others: Vec<_> = others.iter().map(|words| Finder::new(*words)).collect();
    let (mut found, mut rest) = (Vec::new(), text);
    while !rest.is_empty()
        && let Some(at) = first.find(rest.as_bytes())
    {
        let (before, after) = rest.as_bytes().split_at(at);
        let begin = memrchr(b'\n', before).map_or(0, |end| end + 1);
        let end = memchr(b'\n', after).map_or(rest.len(), |end| at + end);
        let line = &rest[begin..end];
        if others.iter().all(|words| words.find(line.as_bytes()).is_some()) {
            found.push(line);
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "one two\ntwo three\nthree one two two\n\n";

    #[test]
    fn words_are_found_across_lines_and_lines_by_all_words() {
        assert!(has(LOG, "two\ntwo") && !has(LOG, "four"));
        assert_eq!(with(LOG, &["two", "one"]), ["one two", "three one two two"]);
        assert_eq!(with(LOG, &["three"]), ["two three", "three one two two"]);
        assert_eq!(with(LOG.trim_end(), &["one", "three"]), ["three one two two"]);
        assert_eq!(with(LOG, &["four"]), [""; 0]);
        assert_eq!(with("", &["four"]), [""; 0]);
    }

    #[test]
    fn without_words_all_lines_are_found() {
        let all = ["one two", "two three", "three one two two", ""];
        assert_eq!(with(LOG, &[]), all);
        assert_eq!(with(LOG, &[""]), all);
    }
}
