//! Why a request is refused.

use std::fmt::Display;

use api::accept::NotAcceptable;

/// Why a request was refused: the code and the message of a Status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) u16, pub(super) String);

// === impl Refusal ===

impl Refusal {
    pub(super) fn no_such_path() -> Self {
        Self(404, "the server could not find the requested resource".to_owned())
    }

    pub(super) fn bad(error: impl Display) -> Self {
        Self(400, error.to_string())
    }
}

impl From<NotAcceptable> for Refusal {
    fn from(error: NotAcceptable) -> Self {
        Self(406, error.to_string())
    }
}
