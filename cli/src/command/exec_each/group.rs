//! Ends a command together with the processes that it started.

use tokio::process::{Child, Command};

/// A process group whose leader is the command. Dropping this kills its remaining processes: one
/// that outlives its kubeconfig would go on with another.
pub struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

// === impl Group ===

impl Group {
    /// Makes the command the leader of its own group.
    pub fn lead(command: &mut Command) {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
    }

    /// The group of `child`, which was started as its leader.
    #[cfg(unix)]
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }

    #[cfg(not(unix))]
    pub fn of(_: &Child) -> Self {
        Self()
    }

    /// Kills the whole group.
    fn end(&self) {
        #[cfg(unix)]
        if let Some(leader) = self.0 {
            // The group may be empty already, which is just as well.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
