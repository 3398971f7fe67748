//! Searches in the log of a whole run, of tens of megabytes. Most crates of tests are compiled
//! unoptimised, and with them what they take from the standard library: there such a search takes a
//! second of processor time, and here, where it is optimised, some hundredths.

/// Whether `words` are anywhere in `text`.
#[inline(never)] // or it would be compiled in the caller's crate
pub fn has(text: &str, words: &str) -> bool {
    text.contains(words)
}

/// The lines of `text` that contain each of `words`.
#[inline(never)]
pub fn with<'t>(text: &'t str, words: &[&str]) -> Vec<&'t str> {
    text.lines().filter(|line| words.iter().all(|words| line.contains(words))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "one two\ntwo three\nthree one two";

    #[test]
    fn words_are_found_across_lines_and_lines_by_all_words() {
        assert!(has(LOG, "two\ntwo") && !has(LOG, "four"));
        assert_eq!(with(LOG, &["two", "one"]), ["one two", "three one two"]);
        assert_eq!(with(LOG, &["four"]), [""; 0]);
    }
}
