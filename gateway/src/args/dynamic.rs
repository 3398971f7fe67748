//! Flags about programs that issue credentials.

use std::time::Duration;

use clap::Args as Group;
use exec_credential::Commands;

use super::duration;

#[derive(Debug, Group)]
pub struct Dynamic {
    /// Programs that cluster Secrets may have run for a credential, names or absolute paths; `*` means any, empty none
    #[arg(long, value_delimiter = ',', default_value = "*", value_name = "COMMANDS")]
    pub exec_commands: Vec<String>,
    /// Time for such a program to end
    #[arg(long, value_parser = duration, default_value = "60s", value_name = "DURATION")]
    pub exec_timeout: Duration,
}

/// How credentials are issued.
#[derive(Debug)]
pub struct Options {
    pub commands: Commands,
    /// Of one run.
    pub timeout: Duration,
}

// === impl Dynamic ===

impl Dynamic {
    pub(super) fn options(&self, wrong: &mut Vec<String>) -> Options {
        if self.exec_timeout.is_zero() {
            wrong.push("--exec-timeout must not be 0: no program is that fast".into());
        }
        Options { commands: Commands::parse(&self.exec_commands), timeout: self.exec_timeout }
    }
}
