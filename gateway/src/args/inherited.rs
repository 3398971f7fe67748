//! Flags that the Go cluster-gateway has and that mean nothing here: accepted, so that its charts
//! and scripts go on working, and named in the log, so that nobody relies on them.
//!
//! They are taken out of the arguments before clap sees them. A hundred hidden clap arguments would
//! do the same, but would also be offered as corrections of mistyped flags.

mod table;

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;

use super::spelling;

/// What `--help` says of all of them.
pub(super) const HELP: &str = "Also accepted, without effect: the other flags of the Go cluster-gateway and of its Kubernetes API \
                               server library (etcd, admission, klog, …). The log names those given.";

/// An accepted flag.
struct AcceptedFlag {
    name: &'static str,
    takes: FlagValue,
}

/// What follows the name of a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagValue {
    /// Behind `=`, or as the next argument.
    Value,
    /// Nothing, or a boolean behind `=`.
    Boolean,
    /// As [`FlagValue::Value`], and the flag means the same as one of ours.
    As(&'static str),
}

/// Arguments without inherited flags.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) arguments: Vec<OsString>,
    /// `--name` of each flag that was taken out, once, in the order given.
    pub(super) without_effect: Vec<String>,
}

/// Takes the inherited flags out of `arguments`, the first being the program's name. A flag that
/// `command` has is never taken.
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

/// The inherited flag that `argument` gives, and the value behind its `=`.
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
