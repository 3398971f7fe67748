//! An append-only file that is rotated by size: `audit.log` becomes
//! `audit-2006-01-02T15-04-05.000.log`.
//!
//! Names and rules are lumberjack's, so that a collector for kube-apiserver's audit log also
//! collects this one. One rule is stricter: a rename never replaces a file.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use net::words;

use super::writer::Output;
use super::{FileConfig, OpenError};
use crate::timestamp::FileStamp;

/// Only the owner may read the users' actions.
const MODE: u32 = 0o600;
/// Most names tried for a rotated file, one millisecond apart.
const MOST_NAMES: u32 = 1000;

#[derive(Debug)]
pub struct RotatingFile {
    config: FileConfig,
    names: Names,
    file: File,
    size: u64,
}

/// The naming of rotated files.
#[derive(Debug)]
struct Names {
    directory: PathBuf,
    prefix: String,
    suffix: String,
}

// === impl RotatingFile ===

impl RotatingFile {
    pub fn open(config: FileConfig) -> Result<Self, OpenError> {
        let names = Names::of(&config.path);
        if !names.directory.is_dir() {
            return Err(OpenError::NoDirectory(config.path));
        }
        let opened = append(&config.path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = opened.map_err(|source| OpenError::Open { path: config.path.clone(), source })?;
        let log = Self { config, names, file, size };
        if let Err(error) = log.prune() {
            tracing::warn!(error = words::io(&error), "cannot delete old audit logs");
        }
        Ok(log)
    }

    /// After a failure partway, the log continues in the file that is open, and the next attempt
    /// starts over.
    fn rotate(&mut self) -> io::Result<()> {
        if fs::exists(&self.config.path)? {
            fs::rename(&self.config.path, self.names.free(SystemTime::now())?)?;
        }
        self.file = append(&self.config.path)?;
        self.size = self.file.metadata()?.len();
        self.prune()
    }

    /// Deletes rotated files that are too many or too old.
    fn prune(&self) -> io::Result<()> {
        let FileConfig { max_backups, max_age, .. } = self.config;
        let mut aside = self.names.aside()?;
        aside.sort_by(|(one, _), (other, _)| other.cmp(one));
        // An age beyond the earliest possible stamp means forever.
        let oldest =
            SystemTime::now().checked_sub(max_age).filter(|at| !max_age.is_zero() && *at > SystemTime::UNIX_EPOCH);
        let oldest = oldest.map(|at| FileStamp(at).to_string());
        for (number, (stamp, path)) in aside.iter().enumerate() {
            let too_many = max_backups > 0 && number >= max_backups;
            if too_many || oldest.as_ref().is_some_and(|oldest| stamp < oldest) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

impl Output for RotatingFile {
    fn prepare(&mut self, bytes: usize) -> io::Result<()> {
        let full = self.size > 0 && self.size + bytes as u64 > self.config.max_size;
        if full { self.rotate() } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

// === impl Names ===

impl Names {
    fn of(path: &Path) -> Self {
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
    fn free(&self, at: SystemTime) -> io::Result<PathBuf> {
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
    fn aside(&self) -> io::Result<Vec<(String, PathBuf)>> {
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
