//! Follows files: checks them regularly, and reads them when they look different.
//!
//! Polling, not inotify, is right for editors that replace files, for the swapped symbolic links of
//! mounted Secrets and `ConfigMap`s, and for network file systems. Checks run where blocking is
//! allowed, so a file system that hangs stops nothing else.

mod file;

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

pub use self::file::{File, LONGEST, Look, read};

/// Interval of checks: how long a change may go unnoticed. A check is one `stat` per file.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// Logs failures of one thing: each cause once, until the thing works again or fails for another
/// cause.
#[derive(Debug, Default)]
pub struct Complaints(Option<String>);

/// Calls `reload` whenever one of `files` may have changed, forever. `reload` returns whether it
/// put new contents into use.
///
/// Unusable contents (such as a key written before its certificate) are logged and reported to
/// `failed` once per cause, and tried again at each check. `reload` keeps the last good contents in
/// use until then.
pub async fn follow<E: Display>(
    what: &'static str,
    files: Vec<PathBuf>,
    mut reload: impl FnMut() -> Result<bool, E> + Send + 'static,
    failed: impl Fn() + Send + 'static,
) {
    let names = files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let mut complaints = Complaints::default();
    let reload = move |_: &Vec<Look>, fresh: bool| match reload() {
        Ok(changed) => {
            if changed {
                tracing::info!(what, files = names, "changed files are in use now");
            }
            complaints.clear();
            // Once more after each change, because another change within the same tick of the file
            // system's clock looks the same.
            !fresh
        }
        Err(error) => {
            if let Some(reason) = complaints.new_cause(&error) {
                tracing::error!(
                    what,
                    files = names,
                    reason,
                    "files cannot be used, the last good contents stay in use"
                );
                failed();
            }
            false
        }
    };
    watch(move || files.iter().map(|path| Look::at(path)).collect::<Vec<_>>(), reload).await;
}

/// Calls `seen` with the result of `look` and whether it is new, forever: when it is new, and until
/// `seen` returns that it is done with it.
pub async fn watch<S: PartialEq + Send + 'static>(
    look: impl FnMut() -> S + Send + 'static,
    seen: impl FnMut(&S, bool) -> bool + Send + 'static,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut state = (look, seen, None::<S>, false);
    loop {
        ticks.tick().await;
        let turn = spawn_blocking(move || {
            let (look, seen, last, done) = &mut state;
            let now = look();
            let fresh = last.as_ref() != Some(&now);
            if fresh || !*done {
                *done = seen(&now, fresh);
                *last = Some(now);
            }
            state
        });
        let Ok(next) = turn.await else { return }; // the runtime is shutting down
        state = next;
    }
}

// === impl Complaints ===

impl Complaints {
    /// The text of `error`, unless the last failure had the same text.
    pub fn new_cause(&mut self, error: &impl Display) -> Option<&str> {
        let reason = error.to_string();
        if self.0.as_ref() == Some(&reason) {
            return None;
        }
        Some(self.0.insert(reason))
    }

    /// The thing works again.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests;
