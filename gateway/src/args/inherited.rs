//! Flags of the Go cluster-gateway without a meaning here: accepted, so that its charts and scripts
//! continue to work, and named in the log, so that no operator relies on them.
//!
//! They are removed from the arguments before clap parses them. A hundred hidden clap arguments
//! would do the same, but clap would also suggest them as corrections of mistyped flags.

mod table;

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;

use super::spelling;

/// The text of `--help` for all of them.
pub(super) const HELP: &str = "Also accepted, without effect: the other flags of the Go cluster-gateway and of its Kubernetes API \
                               server library (etcd, admission, klog, …). The log names those given.";

/// An accepted flag.
struct AcceptedFlag {
    name: &'static str,
    takes: FlagValue,
}

/// The value that a flag takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagValue {
    /// A value after `=`, or as the next argument.
    Value,
    /// None, or a boolean after `=`.
    Boolean,
    /// The same as [`FlagValue::Value`], for a flag with the meaning of one of ours.
    As(&'static str),
}

/// Arguments without inherited flags.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) arguments: Vec<OsString>,
    /// `--name` of each removed flag, once, in the given order.
    pub(super) without_effect: Vec<String>,
}

/// Removes the inherited flags from `arguments`, which begin with the program's name. Never removes
/// a flag that `command` has.
pub(super) fn take<I>(arguments: I, command: &mut Command) -> Result<Taken, clap::Error>
where
    I: IntoIterator,
    I::Item: Into<OsString>,
{
    let mut rest = arguments.into_iter().map(Into::into);
    let mut taken = Taken { arguments: rest.next().into_iter().collect(), without_effect: Vec::new() };
    while let Some(argument) = rest.next() {
        if argument == "--" {
            taken.arguments.push(argument);
            taken.arguments.extend(rest);
            break;
        }
        let argument = spelling::canonical(argument);
        let Some((flag, value)) = parse(&argument, command) else {
            taken.arguments.push(argument);
            continue;
        };
        match flag.takes {
            FlagValue::Boolean => check(flag, value, command)?,
            FlagValue::Value if value.is_none() => drop(next(flag, &mut rest, command)?),
            FlagValue::Value => {}
            FlagValue::As(ours) => {
                let value = value.map_or_else(|| next(flag, &mut rest, command), |value| Ok(value.into()))?;
                let mut argument = OsString::from(format!("--{ours}="));
                argument.push(value);
                taken.arguments.push(argument);
                continue;
            }
        }
        let name = format!("--{}", flag.name);
        if !taken.without_effect.contains(&name) {
            taken.without_effect.push(name);
        }
    }
    Ok(taken)
}

/// The inherited flag in `argument`, with the value after its `=`.
fn parse<'a>(argument: &'a OsString, command: &Command) -> Option<(&'static AcceptedFlag, Option<&'a str>)> {
    let flag = argument.to_str()?.strip_prefix("--")?;
    let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    let ours = command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let found = table::ALL.iter().find(|inherited| inherited.name == name);
    found.filter(|_| !ours).map(|flag| (flag, value))
}

fn next(
    flag: &AcceptedFlag,
    rest: &mut impl Iterator<Item = OsString>,
    command: &mut Command,
) -> Result<OsString, clap::Error> {
    rest.next().ok_or_else(|| {
        command
            .error(ErrorKind::InvalidValue, format!("a value is required for '--{}' but none was supplied", flag.name))
    })
}

fn check(flag: &AcceptedFlag, value: Option<&str>, command: &mut Command) -> Result<(), clap::Error> {
    let Some(Err(why)) = value.map(spelling::boolean) else { return Ok(()) };
    let text = format!("invalid value '{}' for '--{}': {why}", value.unwrap_or_default(), flag.name);
    Err(command.error(ErrorKind::InvalidValue, text))
}

#[cfg(test)]
mod tests;
