//! One followed file: its contents, and its attributes.

use std::error::Error;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::follow;
use crate::words;

/// Longest file that is read, in bytes: several times the size limit of a ConfigMap or Secret.
pub const LONGEST: u64 = 8 * 1024 * 1024;

/// A file, with a fingerprint of its contents when it was last read (not the contents, because
/// these may be secret).
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    longest: u64,
    hasher: RandomState,
    known: Option<u64>,
}

/// Attributes of a file that show a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    path: PathBuf,
    stamp: Option<Stamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    /// Device, inode and length: another file with the same times differs in these.
    file: [u64; 3],
    /// Times of the contents and of the inode: a mode that lets us read the file is a change too.
    times: [i64; 4],
}

/// Reads a file of at most `longest` bytes. Fails with [`io::ErrorKind::FileTooLarge`] if it has
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

    /// Passes changed contents to `apply`, forever, once per change. Contents that cannot be read
    /// or applied are logged with their causes and reported to `failed`; the earlier ones stay in
    /// use.
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
                // The next contents are applied in any case, so that a caller that was notified of
                // the failure is notified of its end.
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
    /// A file's current attributes, even if it does not exist.
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
