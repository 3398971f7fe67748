//! The processes of one run: killed together when this is dropped, or when the gateway's own
//! process ends.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// All groups there are, for [`end_all`]. Of the process, as they are.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A process group whose leader is the program.
pub(super) struct Group(Option<Pid>);

/// Kills all plugins. For a process that is about to exit without dropping what it has.
pub fn end_all() {
    for leader in RUNNING.lock().iter() {
        let _ = kill_process_group(*leader, Signal::KILL);
    }
}

// === impl Group ===

impl Group {
    /// `child` was started as the leader of a group of its own.
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        RUNNING.lock().extend(leader);
        Self(leader)
    }

    /// It ended by itself.
    pub(super) fn leave(mut self) {
        self.forget();
    }

    fn forget(&mut self) -> Option<Pid> {
        let leader = self.0.take()?;
        RUNNING.lock().retain(|one| *one != leader);
        Some(leader)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.forget() {
            // The group may be empty, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
