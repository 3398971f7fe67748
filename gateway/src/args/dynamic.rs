//! Flags for programs that issue credentials.

use std::time::Duration;

use api::secret::HARMLESS_VARIABLES;
use clap::Args as Group;
use exec_credential::Commands;
use telemetry::flags::duration;

use crate::clusters::IssuingOptions;

#[derive(Debug, Group)]
pub struct Dynamic {
    /// Credential plugins that cluster Secrets may name, with any arguments: names or absolute
    /// paths; `*` allows any, empty none
    #[arg(long = "exec-commands", value_delimiter = ',', default_value = "*", value_name = "COMMANDS")]
    pub commands: Vec<String>,
    /// Environment variables that Secrets may set for programs listed in --exec-commands; with `*`
    /// there, they may set any
    #[arg(long = "exec-env", value_delimiter = ',', default_value = HARMLESS_VARIABLES, value_name = "NAMES")]
    pub variables: Vec<String>,
    /// Timeout for one run of a credential plugin
    #[arg(long = "exec-timeout", value_parser = duration, default_value = "60s", value_name = "DURATION")]
    pub timeout: Duration,
}

// === impl Dynamic ===

impl Dynamic {
    pub(super) fn options(&self, wrong: &mut Vec<String>) -> IssuingOptions {
        if self.timeout.is_zero() {
            wrong.push("--exec-timeout must be greater than 0, for example 60s".into());
        }
        for name in self.variables.iter().filter(|name| name.contains(['*', '='])) {
            wrong.push(format!("--exec-env={name}: write full variable names, without values or wildcards"));
        }
        IssuingOptions { commands: Commands::parse(&self.commands, &self.variables), timeout: self.timeout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse_from;

    fn options(arguments: &[&str]) -> (IssuingOptions, Vec<String>) {
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
        let listed = |flags: &[&str]| match options(flags).0.commands {
            Commands::Listed { commands, variables } => (commands, variables),
            Commands::Any => panic!("{flags:?} is a list"),
        };
        assert_eq!(listed(&["--exec-commands=aws,/opt/login"]).0, ["aws", "/opt/login"]);
        assert!(listed(&["--exec-commands="]).0.is_empty());
        assert!(listed(&["--exec-commands=aws"]).1.contains(&"AWS_REGION".to_owned()));
        assert_eq!(listed(&["--exec-commands=aws", "--exec-env=X,Y"]).1, ["X", "Y"]);
        assert!(listed(&["--exec-commands=aws", "--exec-env="]).1.is_empty());
    }

    #[test]
    fn variables_are_names() {
        for flag in ["--exec-env=*", "--exec-env=AWS_*", "--exec-env=X,A=1"] {
            assert!(options(&[flag]).1[0].contains("--exec-env"), "{flag}");
        }
    }

    #[test]
    fn no_time_at_all_is_refused() {
        assert!(options(&["--exec-timeout=0s"]).1[0].contains("--exec-timeout"));
    }
}
