//! One followed file: what it holds, and what it looks like.

use std::error::Error;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::follow;
use crate::words;

/// Longest file read, in bytes: the size limit of a ConfigMap or Secret, several times over.
pub const LONGEST: u64 = 8 * 1024 * 1024;

/// A file, and a fingerprint of what it held when it was last read (not the contents: they can be
/// secret).
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    longest: u64,
    hasher: RandomState,
    known: Option<u64>,
}

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

/// Reads a file of at most `longest` bytes; fails with [`io::ErrorKind::FileTooLarge`] if there are
/// more.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    fs::File::open(path)?.take(longest + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > longest {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} KiB", longest / 1024)));
    }
    Ok(contents)
}

// === impl File ===

impl File {
    /// Reads the file for the first time.
    pub fn open(path: &Path, longest: u64) -> io::Result<(Self, Vec<u8>)> {
        let contents = read(path, longest)?;
        let hasher = RandomState::new();
        let known = Some(hasher.hash_one(&contents));
        Ok((Self { path: path.to_owned(), longest, hasher, known }, contents))
    }

    /// Hands changed contents to `apply`, for ever, once per change. Contents that cannot be read
    /// or applied are logged with their causes and reported to `failed`; those applied before stay.
    pub async fn follow<E: Into<Box<dyn Error + Send + Sync>> + 'static>(
        self,
        what: &'static str,
        mut apply: impl FnMut(&[u8]) -> Result<(), E> + Send + 'static,
        failed: impl Fn() + Send + 'static,
    ) {
        let Self { path, longest, hasher, mut known } = self;
        let files = vec![path.clone()];
        let mut refused = None;
        let reload = move || {
            let contents = read(&path, longest).map_err(|error| {
                // Whatever comes next is applied, so that a caller that saw the failure sees its
                // end.
                known = None;
                words::io(&error)
            })?;
            let now = Some(hasher.hash_one(&contents));
            if now == known {
                return refused.clone().map_or(Ok(false), Err);
            }
            known = now;
            refused = apply(&contents).err().map(|error| words::causes(&*error.into()));
            refused.clone().map_or(Ok(true), Err)
        };
        follow(what, files, reload, failed).await;
    }
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
