//! Our own programs between scripted hubs, members and destinations and clients of this process:
//! for counting instructions, and for training builds. Needs nothing outside of this checkout.

pub mod gateway;
pub mod program;
pub mod tunnel;
pub mod usage;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::program::Program;

/// The environment of a harness.
pub struct Floor<'a> {
    /// Directory for keys, configurations and logs.
    pub directory: &'a Path,
    /// Finds the file of a program.
    pub program: &'a dyn Fn(Program) -> Result<PathBuf>,
    /// Further arguments of the gateway.
    pub gateway: &'a [String],
}

/// A program of ours that runs; ended on drop.
pub trait Player: Sized {
    /// Starts `program`, whose output goes to files in `directory` that begin with `name`.
    fn start(name: &'static str, program: &Path, args: Vec<String>, directory: &Path) -> Result<Self>;

    /// An error with the end of its log if it has ended.
    fn check(&mut self) -> Result<()>;
}

/// Programs and what can be done with them.
pub struct Harness<P> {
    pub programs: Vec<P>,
    pub cases: Vec<Case>,
}

/// One thing to do.
pub struct Case {
    /// `gateway-h2`.
    pub name: &'static str,
    /// `request`.
    pub unit: &'static str,
    /// Units in a round.
    pub units: u64,
    /// Does this many of them.
    pub load: Load,
}

pub type Load = Box<dyn FnMut(u64) -> Result<()>>;

// === impl Floor ===

impl Floor<'_> {
    /// A file's path.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn program(&self, program: Program) -> Result<PathBuf> {
        (self.program)(program)
    }
}
