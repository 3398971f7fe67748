//! A small disk of its own for a program's audit log: a tmpfs in a mount namespace that ends with
//! the program, however that ends.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

/// Room for the log and one that was rotated, a mebibyte each.
const SIZE: &str = "size=4m";
const SCRIPT: &str = r#"mount -t tmpfs -o "$1" tmpfs "$0" && shift && exec "$@""#;
const LOG: &str = "audit.log";
const FILLER: &str = "filler";

/// The words of a command that runs `words` with a disk at `directory`.
pub(super) fn with_disk(directory: &Path, words: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = ["unshare", "--mount", "sh", "-c", SCRIPT].map(str::to_owned).into();
    all.extend([directory.display().to_string(), SIZE.to_owned()]);
    all.extend(words);
    all
}

/// Whether such a disk is possible here: it takes the rights of root.
pub(super) fn is_possible(directory: &Path) -> bool {
    let words = with_disk(directory, vec!["true".to_owned()]);
    let status = Command::new(&words[0]).args(&words[1..]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The flags of the log in `directory`.
pub(super) fn flags(directory: &Path) -> [String; 3] {
    [
        format!("--audit-log-path={}", directory.join(LOG).display()),
        "--audit-log-maxsize=1".to_owned(),
        "--audit-log-maxbackup=1".to_owned(),
    ]
}

/// The disk of a running program, as others reach it.
#[derive(Debug)]
pub struct Disk(PathBuf);

// === impl Disk ===

impl Disk {
    /// That of the program `id` at `directory`.
    pub(super) fn of(id: i32, directory: &Path) -> Self {
        let inside = directory.strip_prefix("/").unwrap_or(directory);
        Self(PathBuf::from(format!("/proc/{id}/root")).join(inside))
    }

    /// Leaves no room.
    pub fn fill(&self) -> Result<()> {
        let mut filler = OpenOptions::new().create(true).append(true).open(self.0.join(FILLER))?;
        let block = vec![0; 4096];
        while filler.write_all(&block).is_ok() {}
        Ok(())
    }

    /// Undoes [`Disk::fill`].
    pub fn free(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.0.join(FILLER))?)
    }

    /// Bytes of the log.
    pub fn written(&self) -> Result<u64> {
        Ok(std::fs::metadata(self.0.join(LOG))?.len())
    }
}
