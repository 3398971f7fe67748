//! The processes of one run, killed together on drop or when the gateway's own process ends.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// All running groups, for [`end_all`]. Per process, like process groups themselves.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A process group with the program as its leader.
pub(super) struct Group(Option<Pid>);

/// Kills all plugins, for a process that exits without dropping its values.
pub fn end_all() {
    for leader in RUNNING.lock().iter() {
        let _ = kill_process_group(*leader, Signal::KILL);
    }
}

// === impl Group ===

impl Group {
    /// `child` must have been started as the leader of its own group.
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        RUNNING.lock().extend(leader);
        Self(leader)
    }

    /// The group ended by itself, so it is not killed.
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
            // Fails if the group is empty, which is the goal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
