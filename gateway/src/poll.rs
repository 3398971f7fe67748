//! Noticing changes of files by looking: right for editors that replace files, symlink swaps and network file systems alike, and
//! cheap for the few files an operator keeps.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a change may go unnoticed.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// What a file looked like: enough to notice that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    path: PathBuf,
    modified: Option<SystemTime>,
    len: u64,
}

// === impl Look ===

impl Look {
    /// A file as it is now; a missing one looks empty.
    pub fn at(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        Self {
            path: path.to_owned(),
            modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            len: metadata.map_or(0, |metadata| metadata.len()),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
