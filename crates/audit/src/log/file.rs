//! An append-only file that is rotated by size: `audit.log` becomes
//! `audit-2006-01-02T15-04-05.000.log`.
//!
//! Names and rules are lumberjack's, so that a collector for kube-apiserver's audit log also
//! collects this one. One rule is stricter: a rename never replaces a file.

mod names;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use net::words;

use self::names::Names;
use super::writer::Output;
use super::{FileConfig, OpenError};
use crate::timestamp::FileStamp;

/// Only the owner may read the users' actions.
const MODE: u32 = 0o600;

#[derive(Debug)]
pub struct RotatingFile {
    config: FileConfig,
    names: Names,
    file: File,
    size: u64,
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
