//! A command and the processes that it started: ended together.

use tokio::process::{Child, Command};

/// A process group whose leader is the command. Dropping this kills its remaining processes: one
/// that lives longer than its kubeconfig would go on with another.
pub struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

// === impl Group ===

impl Group {
    /// Lets the command lead a group of its own.
    pub fn lead(command: &mut Command) {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
    }

    /// `child` was started as the leader of a group.
    #[cfg(unix)]
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }

    #[cfg(not(unix))]
    pub fn of(_: &Child) -> Self {
        Self()
    }

    /// Kills all of it.
    fn end(&self) {
        #[cfg(unix)]
        if let Some(leader) = self.0 {
            // The group may be empty, which is what is wanted.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
