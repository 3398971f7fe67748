//! Runs everything in [`harness`] with programs started as in production.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::process::Process;
use hub_tests::wait;
use rustix::process::{Pid, Signal, kill_process};

use harness::gateway::{self, callers};
use harness::usage::Tree;
use harness::{Floor, Harness, Player, tunnel};

/// Time for a program to end after SIGTERM: longer than any of ours drains.
const END: Duration = Duration::from_mins(1);

/// A running program. It writes its record only if it ends on SIGTERM.
struct Trainee {
    process: Process,
    program: PathBuf,
}

/// Does every case of every harness, `rounds` times.
pub fn train(floor: &Floor<'_>, rounds: usize) -> Result<()> {
    exercise(gateway::harness(floor)?, rounds)?;
    exercise(callers::harness(floor)?, rounds)?;
    exercise(tunnel::harness(floor)?, rounds)
}

fn exercise(harness: Harness<Trainee>, rounds: usize) -> Result<()> {
    let Harness { programs, mut cases } = harness;
    for case in &mut cases {
        for _ in 0..rounds {
            (case.load)(case.units).with_context(|| case.name)?;
        }
    }
    drop(cases); // their connections need not be waited for
    programs.into_iter().rev().try_for_each(Trainee::end)
}

// === impl Trainee ===

impl Player for Trainee {
    fn start(name: &'static str, program: &Path, args: Vec<String>, directory: &Path) -> Result<Self> {
        let process = Process::start(name, program, args, directory)?;
        Ok(Self { process, program: program.canonicalize()? })
    }

    fn check(&mut self) -> Result<()> {
        self.process.check()
    }
}

impl Trainee {
    fn end(mut self) -> Result<()> {
        self.process.check()?;
        let is_program = |id: &u32| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe == self.program);
        let id = Tree::new([self.process.id()]).processes().into_iter().find(is_program);
        let id = id.with_context(|| format!("no process of {}", self.program.display()))?;
        let id = Pid::from_raw(id.cast_signed()).context("no process")?;
        kill_process(id, Signal::TERM).with_context(|| format!("cannot end {}", self.program.display()))?;
        wait::until("a trained program's end", END, || {
            ensure!(self.process.check().is_err(), "it still runs\n{}", self.process.log_tail());
            Ok(())
        })
    }
}
