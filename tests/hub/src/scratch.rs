//! One run's directory under the workspace's target directory: keys, databases, logs, the
//! containers' files.
//!
//! It is removed when the run ends. A killed run cannot remove its own, so each run first removes
//! the directories of dead runs: a live run holds a lock on a file in its directory, which the
//! system releases in any case.

use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};

const LOCK: &str = "run.lock";
/// Directories that this process has created.
static CREATED: AtomicUsize = AtomicUsize::new(0);

/// A run's directory; removed on drop unless [`Scratch::keep`] was called.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    keep: bool,
    _lock: File,
}

/// The workspace's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from)
}

/// A process may have several at once: with its process ID alone, two would have the same name.
fn own_name() -> String {
    format!("{}-{}", std::process::id(), CREATED.fetch_add(1, Ordering::Relaxed))
}

// === impl Scratch ===

impl Scratch {
    /// Creates this run's directory, after removing those of dead runs.
    pub fn create() -> Result<Self> {
        Self::create_called(&own_name())
    }

    /// The same with a name that no other run has: in a PID namespace, process IDs are not the
    /// machine's.
    pub fn create_called(name: &str) -> Result<Self> {
        Self::create_in(&target().join("hub-tests"), name)
    }

    fn create_in(parent: &Path, name: &str) -> Result<Self> {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let parent = parent.canonicalize()?; // programs run elsewhere
        remove_dead(&parent)?;
        // It is locked under a name that `remove_dead` skips, and then renamed: no run sees it
        // unlocked.
        let path = parent.join(name);
        let staging = parent.join(format!(".{name}"));
        for leftover in [&path, &staging] {
            drop(std::fs::remove_dir_all(leftover)); // of a dead process that had this id
        }
        // It contains keys and tokens, with which other users could run commands here as this user.
        DirBuilder::new().mode(0o700).create(&staging)?;
        let lock = File::create(staging.join(LOCK))?;
        lock.lock()?;
        std::fs::rename(&staging, &path)?;
        Ok(Self { path, keep: false, _lock: lock })
    }

    /// The directory, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the directory, so that the logs of a failed run can be read. The next run removes it.
    pub fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}

fn remove_dead(parent: &Path) -> Result<()> {
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let dead = match File::open(entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // The remains of a directory that could not be removed completely: something was
            // mounted there.
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if dead && !hidden {
            drop(std::fs::remove_dir_all(entry.path())); // another run may be removing it too
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_runs_directory_goes_and_a_living_ones_stays() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        std::fs::create_dir_all(parent.join("dead")).unwrap();
        File::create(parent.join("dead").join(LOCK)).unwrap();
        std::fs::create_dir_all(parent.join("half-removed/mounted")).unwrap();
        std::fs::create_dir_all(parent.join("living")).unwrap();
        let living = File::create(parent.join("living").join(LOCK)).unwrap();
        living.lock().unwrap();

        let scratch = Scratch::create_in(parent, "mine").unwrap();
        assert!(scratch.path().is_dir());
        assert!(!parent.join("dead").exists());
        assert!(!parent.join("half-removed").exists());
        assert!(parent.join("living").exists());

        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn one_process_has_several_at_once() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let scratch = Scratch::create_in(parent, &own_name()).unwrap();
                    let file = scratch.path().join("mine");
                    File::create_new(&file).unwrap();
                    drop(Scratch::create_in(parent, &own_name()).unwrap());
                    assert!(file.exists());
                });
            }
        });
    }
}
