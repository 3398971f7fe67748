//! `completion`: a script for a shell.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::output;
use crate::trouble::Result;

/// A script that completes commands in a shell.
///
/// Prints a script that completes commands and options of `kubectl-clusters`. kubectl completes
/// plugins by a program called `kubectl_complete-clusters`, which this does not make.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  source <(kubectl clusters completion bash)")]
pub struct Completion {
    shell: Shell,
}

// === impl Completion ===

impl Completion {
    pub fn run(&self) -> Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "kubectl-clusters", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
