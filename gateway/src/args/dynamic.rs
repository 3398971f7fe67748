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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse_from;

    fn options(arguments: &[&str]) -> (Options, Vec<String>) {
        let mut wrong = Vec::new();
        let args = parse_from([&["cluster-gateway"], arguments].concat()).expect("known flags");
        (args.dynamic.options(&mut wrong), wrong)
    }

    #[test]
    fn any_program_is_run_for_a_minute_unless_told_otherwise() {
        let (options, wrong) = options(&[]);
        assert_eq!((options.commands, options.timeout), (Commands::Any, Duration::from_mins(1)));
        assert!(wrong.is_empty());
    }

    #[test]
    fn programs_are_listed_and_an_empty_list_is_one() {
        let commands = |flag| options(&[flag]).0.commands;
        let listed = Commands::Listed(vec!["aws".into(), "/opt/login".into()]);
        assert_eq!(commands("--exec-commands=aws,/opt/login"), listed);
        assert_eq!(commands("--exec-commands="), Commands::Listed(Vec::new()));
    }

    #[test]
    fn no_time_at_all_is_refused() {
        assert!(options(&["--exec-timeout=0s"]).1[0].contains("--exec-timeout"));
    }
}
