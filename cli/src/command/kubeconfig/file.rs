//! Files that kubeconfigs are written to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// Keeps other kubectls from changing a file until this is dropped. It is kubectl's own way, a
/// second file next to it (client-go, `tools/clientcmd/config.go`, `lockFile`).
pub struct Lock {
    path: PathBuf,
}

// === impl Lock ===

impl Lock {
    pub fn on(file: &Path) -> Result<Self> {
        let mut path = resolved(file).into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(File { .. }) => Ok(Self { path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Trouble::failed(
                format!("another process is changing {}: {} exists", file.display(), path.display()),
                "run the same command again; delete that file if no process is changing it",
            )),
            Err(error) => Err(unwritable(file, &error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// The first of the files that were read, where kubectl puts new contexts.
pub fn own(session: &Session) -> Result<PathBuf> {
    if let Some(file) = &session.options.kubeconfig {
        return Ok(file.clone());
    }
    hub::client::first_kubeconfig()
        .ok_or_else(|| Trouble::usage("there is no home directory", "name the file with --kubeconfig"))
}

/// Replaces the file in one step, because others read it now, and for the owner alone, because a
/// kubeconfig holds credentials.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error: &io::Error| unwritable(path, error);
    let path = &resolved(path);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(|error| failed(&error))?;
    file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    file.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// Follows links, so that a link stays a link.
fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn unwritable(path: &Path, error: &io::Error) -> Trouble {
    Trouble::failed(format!("cannot write {}: {error}", path.display()), "check that you may write there")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_changed_by_one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        let lock = Lock::on(&file).unwrap();
        assert!(directory.path().join("config.lock").exists(), "where kubectl looks for it");
        let trouble = Lock::on(&file).map(drop).unwrap_err();
        assert!(trouble.what.contains("config.lock") && trouble.remedy.contains("again"), "{trouble}");
        drop(lock);
        Lock::on(&file).map(drop).unwrap();
    }
}
