//! Files that are read again while the program runs.
//!
//! Polling, not inotify: mounted Secrets and `ConfigMap`s change by swapped symbolic links, and half a minute is soon enough
//! for files that people edit (Kubernetes' own dynamic file content polls each minute).

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{Digest, SHA256, digest};
use tokio::time::{MissedTickBehavior, interval};

/// Between two looks at a file.
const INTERVAL: Duration = Duration::from_secs(30);
/// Longest file read, in bytes: the size limit of a ConfigMap or Secret, several times over.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// A file, and a fingerprint of what it held when it was last read (not the contents: they can be secret).
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    known: Digest,
}

// === impl Watched ===

impl Watched {
    /// Reads the file for the first time.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let contents = read(path)?;
        Ok((Self { path: path.to_owned(), known: digest(&SHA256, &contents) }, contents))
    }

    /// Reads the file now and then, for ever, and hands changed contents to `apply`. What cannot be read or applied is
    /// logged, and what was applied before stays.
    pub(crate) async fn follow(self, apply: impl FnMut(&[u8]) -> Result<(), String>) {
        self.follow_every(INTERVAL, apply).await;
    }

    /// As [`Watched::follow`], with a look each `period`.
    pub(crate) async fn follow_every(mut self, period: Duration, mut apply: impl FnMut(&[u8]) -> Result<(), String>) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await; // the first is immediate
        let mut unreadable = None;
        loop {
            ticks.tick().await;
            let path = self.path.clone();
            let contents = match tokio::task::spawn_blocking(move || read(&path)).await {
                Ok(Ok(contents)) => contents,
                Ok(Err(error)) => {
                    if unreadable.replace(error.kind()) != Some(error.kind()) {
                        tracing::warn!(path = %self.path.display(), %error, "file cannot be read again: the old contents stay in force");
                    }
                    continue;
                }
                Err(_) => return, // the runtime is shutting down
            };
            unreadable = None;
            let seen = digest(&SHA256, &contents);
            if seen.as_ref() == self.known.as_ref() {
                continue;
            }
            self.known = seen;
            match apply(&contents) {
                Ok(()) => tracing::info!(path = %self.path.display(), "file changed and was loaded"),
                Err(error) => {
                    tracing::warn!(path = %self.path.display(), error, "changed file is not valid: the old contents stay in force");
                }
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests;
