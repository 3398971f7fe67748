//! The processes of one run: killed together when this is dropped.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A process group whose leader is the program.
pub(super) struct Group(Option<Pid>);

// === impl Group ===

impl Group {
    /// `child` was started as the leader of a group of its own.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// It ended by itself.
    pub(super) fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // There may be nobody left, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
