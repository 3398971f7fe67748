//! A gateway without descriptors to spare.

use std::fs;
use std::io;
use std::net::TcpStream;

use anyhow::{Context as _, Result};
use hub_tests::wait;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::{END, Hand};
use crate::world::Target;

/// Descriptors beyond those that are open.
const SPARE: u64 = 2;
/// Connections that take these, and those that others give back meanwhile.
const TAKING: usize = 64;
/// What the gateway logs where it has none for the next connection.
const RAN_OUT: &[u8] = b"cannot accept connections";

impl Hand<'_> {
    /// The soft limit alone: an unprivileged process cannot raise the hard one again.
    pub(super) fn descriptors(&mut self, number: usize) -> Result<()> {
        let address = self.world.gateway_address(number);
        let process = self.world.process(Target::Gateway, number);
        let (id, log) = (process.program_id()?, process.log().to_owned());
        let begins = fs::read(&log)?.len();
        let open = fs::read_dir(format!("/proc/{id}/fd"))?.count() as u64;
        let process = Pid::from_raw(id).context("no process")?;
        let maximum = getrlimit(Resource::Nofile).maximum; // it has ours
        let limit = |current| prlimit(Some(process), Resource::Nofile, Rlimit { current, maximum });
        let before = limit(Some(open + SPARE))?;
        let taking: io::Result<Vec<_>> = (0..TAKING).map(|_| TcpStream::connect(address)).collect();
        let ran_out = wait::until_true(&format!("gateway {number} to run out of descriptors"), END, || {
            let text = fs::read(&log)?;
            Ok(text[begins..].windows(RAN_OUT.len()).any(|words| words == RAN_OUT))
        });
        self.pause(self.lengths.limited);
        limit(before.current)?;
        drop(taking?);
        ran_out
    }
}
