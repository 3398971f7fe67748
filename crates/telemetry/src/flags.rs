//! The common parts of all programs' command lines: durations, amounts of memory, environment
//! variables, and the log flags.

mod quantity;

use std::ffi::OsString;
use std::fmt;

use clap::{Args, Command, Parser, ValueEnum};

pub use self::quantity::{bytes, duration};
use crate::logs::Format;

/// The flags of the log.
#[derive(Debug, Args)]
pub struct LogFlags {
    /// Log format
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Log level, or a filter such as `info,tunnel=debug`
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub log_level: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// All mistakes in a command line that clap accepted, one line each, with their flags.
#[derive(Debug)]
pub struct InvalidConfig(pub Vec<String>);

/// Parses `arguments`, which start with the program's name. Each flag may also be an environment
/// variable with the prefix `prefix`.
///
/// # Errors
///
/// Fails on a usage error, and also for `--help` and `--version`, which are not errors.
pub fn parse<A, I, T>(prefix: &str, arguments: I) -> Result<A, clap::Error>
where
    A: Parser,
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let command = with_environment(A::command(), prefix);
    A::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// Runs `parse` on the process's arguments. Ends the process if clap prints help or a usage error.
pub fn of_process<A>(parse: impl FnOnce(std::env::ArgsOs) -> Result<A, clap::Error>) -> A {
    parse(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// Lets an environment variable set each flag of `command`: `prefix` and the flag's name.
pub fn with_environment(command: Command, prefix: &str) -> Command {
    command.mut_args(|argument| match argument.get_long() {
        Some("help" | "version") | None => argument,
        Some(long) => {
            let variable = format!("{prefix}{}", long.to_uppercase().replace('-', "_"));
            argument.env(variable).hide_env(true)
        }
    })
}

// === impl InvalidConfig ===

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid arguments:")?;
        self.0.iter().try_for_each(|wrong| write!(f, "\n  {wrong}"))
    }
}

impl std::error::Error for InvalidConfig {}

// === impl LogFormat ===

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}
