//! Formats errors in the words of Go, which clients and operators of clusters know and search for:
//! `connection reset by peer`, without `(os error 104)` or the C library's words.

use std::error::Error as StdError;
use std::fmt;
use std::io::{Error, ErrorKind};
use std::iter::successors;
use std::sync::Arc;

/// Most causes shown for one error, so that even a circular chain ends.
const MOST: usize = 16;
/// The text of the standard library between the system's words and the number.
const NUMBER: &str = " (os error ";
/// Kinds for which the standard library's words differ from Go's.
const KINDS: [ErrorKind; 4] =
    [ErrorKind::ConnectionReset, ErrorKind::HostUnreachable, ErrorKind::NetworkUnreachable, ErrorKind::TimedOut];

/// An error that reads as its [`causes`]. Cheap to clone, because many may wait for what failed.
#[derive(Debug, Clone)]
pub struct Causes(Arc<dyn StdError + Send + Sync>);

/// An error of the system, or of its substitute.
pub fn io(error: &Error) -> String {
    let is_own = error.get_ref().is_some();
    match error.kind() {
        _ if is_own => plain(&error.to_string()),
        ErrorKind::ConnectionRefused => "connection refused".into(),
        ErrorKind::HostUnreachable => "no route to host".into(),
        ErrorKind::NetworkUnreachable => "network is unreachable".into(),
        ErrorKind::ConnectionReset => "connection reset by peer".into(),
        // Go's words for a deadline of the program. A timeout of the system keeps the system's
        // words.
        ErrorKind::TimedOut if error.raw_os_error().is_none() => "i/o timeout".into(),
        _ => {
            let text = error.to_string();
            text.split(NUMBER).next().unwrap_or_default().to_lowercase()
        }
    }
}

/// The first `most` characters of a text that others wrote. `…` stands for what is cut off.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `error`, its cause, that cause's cause, and so on.
pub fn chain<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    successors(Some(error), |error| (*error).source())
}

/// `error` and its causes, separated by `: `. Omits a cause that the text already ends with. Texts
/// of a transport can contain addresses.
pub fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = one(error);
    // A `Causes` has said all that is behind it.
    let unsaid = chain(error).take(MOST).position(<dyn StdError>::is::<Causes>).unwrap_or(MOST);
    for cause in chain(error).skip(1).take(unsaid) {
        let cause = one(cause);
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

fn one(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref() {
        return io(error);
    }
    let text = error.to_string();
    // h2 copies an error to all streams, and a copy only has the kind.
    let copied = KINDS.into_iter().map(Error::from).find(|kind| kind.to_string() == text);
    copied.map_or_else(|| plain(&text), |kind| io(&kind))
}

/// The text of an error that quotes errors of the system, with those in these words.
pub fn plain(text: &str) -> String {
    let mut pieces = text.split(NUMBER);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let numbered = piece.split_once(')').and_then(|(number, after)| Some((number.parse().ok()?, after)));
        let Some((number, after)) = numbered else {
            plain.push_str(NUMBER);
            plain.push_str(piece);
            continue;
        };
        let error = Error::from_raw_os_error(number);
        if let Some(before) = plain.strip_suffix(error.to_string().split(NUMBER).next().unwrap_or_default()) {
            plain.truncate(before.len());
            plain.push_str(&io(&error));
        }
        plain.push_str(after);
    }
    plain
}

/// Text from others on one line, with each control character as a blank: several lines would look
/// like several rows or log lines, and a control character may do anything to a terminal.
pub fn tame(text: &str) -> String {
    text.chars().map(|character| if is_command(character) { ' ' } else { character }).collect()
}

/// Whether a terminal obeys the character instead of showing it: control characters, and those that
/// change the direction of text (Unicode, UAX #9, 2: directional formatting characters).
pub fn is_command(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

// === impl Causes ===

impl Causes {
    pub fn of(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error: Box<dyn StdError + Send + Sync> = error.into();
        Self(error.into())
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&causes(&*self.0))
    }
}

impl StdError for Causes {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("connect")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("tcp: {0}")]
    struct Inner(#[source] Error);

    #[test]
    fn every_cause_is_told_once() {
        assert_eq!(causes(&Outer(Inner(Error::other("refused")))), "connect: tcp: refused");
        assert_eq!(causes(&Error::other("alone")), "alone");
    }

    #[test]
    fn an_error_that_has_its_causes_is_one_of_the_chain_and_no_cause_is_told_twice() {
        #[derive(Debug, thiserror::Error)]
        #[error("no answer: {0}")]
        struct Unanswered(#[source] Causes);

        let unanswered = Unanswered(Causes::of(Outer(Inner(Error::other("refused")))));
        let text = "no answer: connect: tcp: refused";
        assert_eq!((unanswered.to_string(), causes(&unanswered)), (text.to_owned(), text.to_owned()));
        assert_eq!(causes(&unanswered.0), "connect: tcp: refused");
        assert!(chain(&unanswered).any(<dyn StdError>::is::<Inner>), "programs find what it was");
    }

    #[test]
    fn systems_are_told_in_go_s_words_without_numbers() {
        for (number, words) in [
            (101, "network is unreachable"),
            (104, "connection reset by peer"),
            (110, "connection timed out"),
            (111, "connection refused"),
            (13, "permission denied"),
        ] {
            let error = || Error::from_raw_os_error(number);
            assert_eq!(io(&error()), words);
            assert_eq!(io(&Error::other(error())), words, "within another");
            assert_eq!(causes(&Outer(Inner(error()))), format!("connect: tcp: {words}"));
        }
        assert_eq!(io(&ErrorKind::TimedOut.into()), "i/o timeout");
        assert_eq!(io(&ErrorKind::ConnectionReset.into()), "connection reset by peer");
    }

    #[test]
    fn a_kind_alone_is_told_in_go_s_words() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Copied(Error);

        for (kind, words) in
            [(ErrorKind::ConnectionReset, "connection reset by peer"), (ErrorKind::TimedOut, "i/o timeout")]
        {
            assert_eq!(causes(&Copied(kind.into())), words);
        }
    }

    #[test]
    fn texts_that_quote_the_system_keep_the_rest() {
        let quoted = format!("a: {}, b: {}.", Error::from_raw_os_error(104), Error::from_raw_os_error(32));
        assert_eq!(plain(&quoted), "a: connection reset by peer, b: broken pipe.");
        for text in ["none of it", "odd (os error ", "odd (os error x) more", "of another (os error 104)"] {
            let expected = text.strip_suffix(" (os error 104)").unwrap_or(text);
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!([cut("Zürich", 6), cut("Zürich", 2), cut("", 0)], ["Zürich", "Zü…", ""]);
    }

    #[test]
    fn a_cell_stays_on_its_line() {
        assert_eq!(tame("a\nb\x1b[2Jc"), "a b [2Jc");
        assert_eq!(tame("a\u{202e}nimda\u{2066}\u{9b}b"), "a nimda  b");
    }
}
