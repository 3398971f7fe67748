//! The command line, and the commands that it runs.

mod check;
mod completion;
mod dashboard;
mod detach;
#[cfg(test)]
mod examples;
mod exec_each;
mod get;
mod install;
mod join;
mod kubeconfig;
mod label;
mod list;
mod placement;
mod probe;
mod rename;
mod rotate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::session::{Options, Session};
use crate::trouble::Result;

/// Join, see and use the clusters behind a gateway.
#[derive(Debug, Parser)]
#[command(name = "kubectl-clusters", bin_name = "kubectl clusters", version, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  kubectl clusters join berlin --member-context berlin-admin --rights view
  kubectl clusters list
  kubectl clusters get pods --all -A
  kubectl clusters probe berlin

Exit codes: 0 done; 1 failed for at least one cluster; 2 wrong command line, file or name;
3 the hub could not be queried; 130 Ctrl-C.")]
pub struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

/// The docstring of a command's options is its help. A docstring on a variant would replace that
/// longer text.
#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Get(get::Get),
    ExecEach(exec_each::ExecEach),
    Kubeconfig(kubeconfig::Contexts),
    Placement(placement::Placement),
    Probe(probe::Probe),
    Check(check::Check),
    Dashboard(dashboard::Dashboard),
    Install(install::Install),
    Join(Box<join::Join>),
    Label(label::Label),
    Alias(label::Alias),
    Rename(rename::Rename),
    Rotate(rotate::Rotate),
    Detach(detach::Detach),
    Completion(completion::Completion),
}

// === impl Cli ===

impl Cli {
    /// The token to cancel at Ctrl-C.
    pub fn interrupted(&self) -> CancellationToken {
        self.options.interrupted.clone()
    }

    /// Whether the command creates or removes anything in more than one step.
    pub fn changes(&self) -> bool {
        use Command::{Detach, Install, Join, Rename, Rotate};
        matches!(self.command, Join(_) | Rename(_) | Rotate(_) | Detach(_) | Install(_))
    }

    /// Whether the command ends by itself, and soon, after an interrupt.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self.command, Command::Install(_))
    }
}

/// Runs a command. Returns the exit code of the process.
pub async fn run(cli: Cli) -> Result<ExitCode> {
    let Cli { options, command } = cli;
    match &command {
        Command::Completion(completion) => return completion.run(&options).await,
        Command::Install(install) => return install.run(&options).await,
        _ => {}
    }
    let session = &Session::open(options).await?;
    match command {
        Command::Check(check) => check.run(session).await,
        Command::Completion(_) | Command::Install(_) => Ok(ExitCode::SUCCESS),
        Command::Dashboard(dashboard) => dashboard.run(session).await,
        Command::ExecEach(exec) => exec.run(session).await,
        Command::Kubeconfig(contexts) => contexts.run(session).await,
        Command::Placement(placement) => placement.run(session).await,
        Command::Probe(probe) => probe.run(session).await,
        Command::Rotate(rotate) => rotate.run(session).await,
        Command::List(list) => list.run(session).await,
        Command::Get(get) => get.run(session).await,
        Command::Join(join) => join.run(session).await,
        Command::Label(label) => label.run(session).await,
        Command::Alias(alias) => alias.run(session).await,
        Command::Rename(rename) => rename.run(session).await,
        Command::Detach(detach) => detach.run(session).await,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_each_command_is_explained_with_examples() {
        Cli::command().debug_assert();
        let all = Cli::command();
        for command in all.get_subcommands().chain([&all]) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("kubectl clusters"), "{}: {help}", command.get_name());
        }
        for command in all.get_subcommands() {
            let [short, long] =
                [command.get_about(), command.get_long_about()].map(|text| text.map(ToString::to_string));
            let (short, long) = (short.unwrap_or_default(), long.unwrap_or_default());
            assert!(!short.is_empty() && short.len() < 80, "{}: {short}", command.get_name());
            assert!(long.starts_with(&short) && long.len() > short.len(), "{}: {long}", command.get_name());
        }
    }
}
