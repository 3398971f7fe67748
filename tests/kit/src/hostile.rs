//! Attacks on an HTTP/2 connection, a table: what one client can do to a server that serves many.
//!
//! Each row has the frames of one client, and the permitted outcomes: an answer with the reason, or
//! the end of its own stream or connection. It must not disturb others, which the test has to
//! check: it knows the others.

mod bodies;
mod floods;
mod heads;
mod resets;
mod targets;
mod windows;

use std::pin::Pin;

use crate::frames::Wire;

/// A permitted outcome of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The answer of the server behind: nothing is wrong with it.
    Passed,
    /// This status, with this in its text, which is not empty.
    Told(u16, &'static str),
    /// The end of its own stream alone, with a code for the reason.
    Reset,
    /// The end of its own connection, by a GOAWAY with a code for the reason.
    Ended,
    /// The same for what is only too much: with `ENHANCE_YOUR_CALM`.
    Calmed,
    /// The same without a GOAWAY: it said goodbye itself, or sends too much to see one.
    Dropped,
    /// No answer: its connection goes on.
    Nothing,
}

/// The outcome of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered {
        status: u16,
        text: String,
    },
    /// Reset with this code.
    Reset(u32),
    /// Ended with the code of a GOAWAY, if one came.
    Ended(Option<u32>),
    Nothing,
}

/// Codes of RFC 9113 section 7. The first is no reason.
const NO_ERROR: u32 = 0;
const ENHANCE_YOUR_CALM: u32 = 11;

type Attacking<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One attack.
pub struct Row {
    pub name: &'static str,
    /// A hub can be made to send it, by its users, on the connection that it has for all of them.
    pub by_hub: bool,
    /// Our server's outcome, any of these.
    pub expected: &'static [Expected],
    pub attack: for<'a> fn(&'a mut Wire) -> Attacking<'a>,
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let tables: [&[Row]; 6] = [heads::ROWS, bodies::ROWS, resets::ROWS, windows::ROWS, floods::ROWS, targets::ROWS];
    tables.into_iter().flatten()
}

// === impl Outcome ===

impl Outcome {
    /// Whether this is one of the outcomes that a row expects. `is_served` knows the statuses and
    /// texts of the server behind.
    pub fn is_one_of(&self, expected: &[Expected], is_served: impl Fn(u16, &str) -> bool) -> bool {
        expected.iter().any(|expected| match (expected, self) {
            (Expected::Passed, Self::Answered { status, text }) => is_served(*status, text),
            (Expected::Told(code, words), Self::Answered { status, text }) => {
                code == status && !text.is_empty() && text.contains(words)
            }
            (Expected::Reset, Self::Reset(code)) | (Expected::Ended, Self::Ended(Some(code))) => *code != NO_ERROR,
            (Expected::Calmed, Self::Ended(Some(code))) => *code == ENHANCE_YOUR_CALM,
            (Expected::Dropped, Self::Ended(None)) | (Expected::Nothing, Self::Nothing) => true,
            _ => false,
        })
    }

    /// The end of `stream`, or of its connection.
    async fn of(wire: &mut Wire, stream: u32) -> Self {
        let seen = wire.outcome(stream).await;
        match (seen.status, seen.reset) {
            // A reset behind a whole answer only says that no more of the request is wanted.
            (Some(status), reset) if seen.ended || reset.is_some() => Self::Answered { status, text: seen.text() },
            (_, Some(code)) => Self::Reset(code),
            _ if wire.is_over() => Self::Ended(wire.goodbye()),
            _ => Self::Nothing,
        }
    }

    /// The fate of the connection.
    async fn of_connection(wire: &mut Wire) -> Self {
        if wire.answers_ping().await { Self::Nothing } else { Self::Ended(wire.goodbye()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An outcome without a reason is none that a row permits.
    #[test]
    fn an_answer_says_why() {
        let is = |outcome: &Outcome, expected| outcome.is_one_of(&[expected], |_, _| false);
        let told = |text: &str| Outcome::Answered { status: 400, text: text.to_owned() };
        assert!(is(&told("why"), Expected::Told(400, "")) && !is(&told(""), Expected::Told(400, "")));
        assert!(is(&Outcome::Reset(1), Expected::Reset) && !is(&Outcome::Reset(NO_ERROR), Expected::Reset));
        for (code, ended, calmed) in [(NO_ERROR, false, false), (1, true, false), (ENHANCE_YOUR_CALM, true, true)] {
            let outcome = Outcome::Ended(Some(code));
            assert_eq!((is(&outcome, Expected::Ended), is(&outcome, Expected::Calmed)), (ended, calmed), "{code}");
        }
        assert!(!is(&Outcome::Ended(None), Expected::Calmed) && is(&Outcome::Ended(None), Expected::Dropped));
    }
}
