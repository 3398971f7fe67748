//! Which name uses which, and where that is written.

use std::fmt;
use std::path::PathBuf;

/// One use of `to` by `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    pub from: String,
    pub to: String,
    /// Path below the workspace's directory.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: usize,
}

impl fmt::Display for Arrow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {} -> {}", self.file.display(), self.line, self.from, self.to)
    }
}
