//! A gateway without descriptors to spare.

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::Hand;
use crate::world::Target;

/// Descriptors beyond those that are open.
const SPARE: u64 = 2;

impl Hand<'_> {
    /// The soft limit alone: an unprivileged process cannot raise the hard one again.
    pub(super) fn descriptors(&mut self, number: usize) -> Result<()> {
        let id = self.world.process(Target::Gateway, number).program_id()?;
        let open = std::fs::read_dir(format!("/proc/{id}/fd"))?.count() as u64;
        let process = Pid::from_raw(id).context("no process")?;
        let maximum = getrlimit(Resource::Nofile).maximum; // it has ours
        let limit = |current| prlimit(Some(process), Resource::Nofile, Rlimit { current, maximum });
        let before = limit(Some(open + SPARE))?;
        self.pause(self.lengths.limited);
        limit(before.current)?;
        Ok(())
    }
}
