//! Errors in full: many name only the layer they come from, and leave the reason to their sources.

use std::error::Error;

/// Causes told of one error: a chain that goes in circles ends all the same.
const MOST: usize = 16;

/// `error` and its causes, `: ` between them; a cause that the text ends with already is not told
/// twice. For the log: texts of a transport can name addresses.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(Some(error), |error| (*error).source()).skip(1).take(MOST) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("connect")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("tcp: {0}")]
    struct Inner(#[source] io::Error);

    #[test]
    fn every_cause_is_told_once() {
        assert_eq!(causes(&Outer(Inner(io::Error::other("refused")))), "connect: tcp: refused");
        assert_eq!(causes(&io::Error::other("alone")), "alone");
    }
}
