//! From process arguments to [`Args`]: each flag gets its environment variable here, so that none
//! can be forgotten.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};
use telemetry::flags::{self, with_environment};

use super::{Args, inherited, spelling};

/// Parses the process's arguments; prints help or a usage error and ends the process where clap
/// does.
pub fn parse() -> Args {
    flags::of_process(parse_from)
}

/// Parses `arguments`, the first being the program's name.
pub fn parse_from(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Args, clap::Error> {
    let command = spelling::of_go(with_environment(Args::command(), "CLUSTER_GATEWAY_"));
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut command = command.after_help(format!("{after}\n\n{}", inherited::HELP).trim_start().to_owned());
    let taken = inherited::take(arguments, &mut command)?;
    spelling::no_detached_values(&taken.arguments, &mut command)?;
    let mut args = Args::from_arg_matches(&command.try_get_matches_from(taken.arguments)?)?;
    args.inherited = taken.without_effect;
    Ok(args)
}
