//! Whether something is as it should be, in one character.

/// The character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    Good,
    /// It works, but will not for long, or could not be looked at.
    Warning,
    Bad,
}

// === impl Mark ===

impl Mark {
    /// The sign, in colour for terminals.
    pub fn sign(self, coloured: bool) -> &'static str {
        match (self, coloured) {
            (Self::Good, false) => "✓",
            (Self::Warning, false) => "‼",
            (Self::Bad, false) => "✗",
            (Self::Good, true) => "\x1b[32m✓\x1b[0m",
            (Self::Warning, true) => "\x1b[33m‼\x1b[0m",
            (Self::Bad, true) => "\x1b[31m✗\x1b[0m",
        }
    }
}
