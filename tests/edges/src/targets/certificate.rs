//! Any client certificate: what follows it changes nothing of who its holder is, and all that is
//! said of the holder is in it.
//!
//! Input: DER.

use auth::edges::holder;

pub const WORDS: &[&str] = &["\u{6}\u{3}U\u{4}\u{3}\u{c}", "\u{6}\u{3}U\u{4}\n\u{c}", "system:masters", "0", "1", "\0"];

pub fn check(input: &[u8]) {
    let Some(read) = holder(input) else { return };
    assert_eq!(holder(&[input, b"more"].concat()).as_ref(), Some(&read));
    let is_there = |text: &str| text.is_empty() || input.windows(text.len()).any(|part| part == text.as_bytes());
    for text in read.organizations.iter().chain([&read.common_name]) {
        assert!(is_there(text), "{text}: no such text");
    }
}
