//! What a file looked like.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Enough of a file to notice that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    path: PathBuf,
    stamp: Option<Stamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    /// Device, number and length: another file of the same age in its place is another one.
    file: [u64; 3],
    /// Of contents, then of anything: a mode that lets us read it is a change too.
    times: [i64; 4],
}

// === impl Look ===

impl Look {
    /// A file as it is now, missing or not.
    pub fn at(path: &Path) -> Self {
        let stamp = fs::metadata(path).ok().map(|metadata| Stamp {
            file: [metadata.dev(), metadata.ino(), metadata.len()],
            times: [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()],
        });
        Self { path: path.to_owned(), stamp }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
