//! Names of rotated files, and how many are kept.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::timestamp::FileStamp;

/// Most names tried for a rotated file, one millisecond apart.
const MOST_NAMES: u32 = 1000;

/// The naming of rotated files.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) directory: PathBuf,
    prefix: String,
    suffix: String,
}

// === impl Names ===

impl Names {
    pub(super) fn of(path: &Path) -> Self {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let suffix = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        Self {
            directory: directory.to_owned(),
            prefix: format!("{}-", text(path.file_stem())),
            suffix: suffix.unwrap_or_default(),
        }
    }

    /// A free name for a file rotated at `at`, or slightly later.
    pub(super) fn free(&self, at: SystemTime) -> io::Result<PathBuf> {
        for later in 0..MOST_NAMES {
            let stamp = FileStamp(at + Duration::from_millis(1) * later);
            let path = self.directory.join(format!("{}{stamp}{}", self.prefix, self.suffix));
            if !fs::exists(&path)? {
                return Ok(path);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The rotated files with their stamps.
    pub(super) fn aside(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            let stamp = name.strip_prefix(&self.prefix).and_then(|rest| rest.strip_suffix(&self.suffix));
            if let Some(stamp) = stamp.filter(|stamp| FileStamp::is_one(stamp)) {
                found.push((stamp.to_owned(), entry.path()));
            }
        }
        Ok(found)
    }
}
