//! Spellings of flags by `github.com/spf13/pflag` and `k8s.io/component-base/cli/flag` that clap
//! does not have.
//!
//! `_` may replace `-` in a name, `-v` is the only short flag, the last value of a repeated flag
//! counts, and a boolean takes a value only after `=`, in any of Go's spellings.

use std::ffi::OsString;

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

/// `argument` with its flag's name in our spelling.
pub(super) fn canonical(argument: OsString) -> OsString {
    let Some(text) = argument.to_str() else { return argument };
    if let Some(value) = text.strip_prefix("-v") {
        return match value.strip_prefix('=').unwrap_or(value) {
            "" => "--v".into(),
            number => format!("--v={number}").into(),
        };
    }
    let Some(flag) = text.strip_prefix("--") else { return argument };
    let (name, value) = flag.split_at(flag.find('=').unwrap_or(flag.len()));
    if name.contains('_') { format!("--{}{value}", name.replace('_', "-")).into() } else { argument }
}

/// `command` with Go's rules for booleans and repetition.
pub(super) fn of_go(command: Command) -> Command {
    command
        .args_override_self(true)
        .mut_args(|argument| if is_boolean(&argument) { boolean_flag(argument) } else { argument })
}

fn is_boolean(argument: &Arg) -> bool {
    let values = argument.get_possible_values();
    let names: Vec<_> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
    matches!(argument.get_action(), ArgAction::SetTrue)
        || (matches!(argument.get_action(), ArgAction::Set) && names == ["true", "false"])
}

fn boolean_flag(argument: Arg) -> Arg {
    let default = argument.get_default_values().first().cloned().unwrap_or_else(|| "false".into());
    let argument = argument.hide_default_value(default == "false");
    argument
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value(default)
        .default_missing_value("true")
        .value_name("BOOL")
        .value_parser(ValueParser::new(boolean))
}

/// Fails if a boolean flag of `command` is followed by its value as a separate word. To pflag that
/// is the flag alone and a stray argument, so `--anonymous-auth false` would turn it on: a failed
/// start is better than the opposite of what was meant.
pub(super) fn no_detached_values(arguments: &[OsString], command: &mut Command) -> Result<(), clap::Error> {
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    for (flag, word) in flags.zip(arguments.iter().skip(1)) {
        let (Some(flag), Some(word)) = (flag.to_str(), word.to_str()) else { continue };
        let takes_none =
            |argument: &Arg| argument.is_require_equals_set() && argument.get_long() == flag.strip_prefix("--");
        if boolean(word).is_ok() && command.get_arguments().any(takes_none) {
            let text = format!("the value in '{flag} {word}' has no effect: write '{flag}={word}'");
            return Err(command.error(ErrorKind::InvalidValue, text));
        }
    }
    Ok(())
}

/// Parses like Go's `strconv.ParseBool`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}
