//! Progress of an operation over many clusters: one line on standard error, if that is a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use fleet::{Event, Progress};

/// The progress line.
#[derive(Debug)]
pub struct Line {
    shown: bool,
    doing: &'static str,
}

// === impl Line ===

impl Line {
    /// `doing` is what is done to each cluster, as in "asked".
    pub fn new(doing: &'static str) -> Self {
        Self { shown: io::stderr().is_terminal(), doing }
    }

    /// Clears the line, before something else is shown.
    pub fn clear(&mut self) {
        if self.shown {
            drop(write!(io::stderr().lock(), "\r\x1b[K"));
        }
    }

    /// Updates the line when a cluster has finished.
    pub fn tell<T>(&mut self, progress: Progress, event: &Event<T>) {
        if self.shown && matches!(event, Event::Finished(_)) {
            let Progress { all, finished, failed, .. } = progress;
            let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
            drop(write!(io::stderr().lock(), "\r\x1b[K{finished}/{all} clusters {}{failed}", self.doing));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.clear();
    }
}
