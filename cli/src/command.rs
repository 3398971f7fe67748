//! The command line, and what runs for it.

mod check;
mod completion;
mod dashboard;
mod detach;
mod exec_each;
mod get;
mod install;
mod join;
mod kubeconfig;
mod label;
mod list;
mod probe;
mod rename;
mod rotate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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

Exit codes: 0 done; 1 failed, of one cluster or more; 2 the command line, a file or a name is wrong;
3 the hub could not be asked; 130 Ctrl-C.")]
pub struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The clusters: whether they answer, what they are, when their credentials end
    List(list::List),
    /// Objects of many clusters in one table
    Get(get::Get),
    /// Run a command for each of many clusters
    ExecEach(exec_each::ExecEach),
    /// Contexts for clusters, through the hub
    Kubeconfig(kubeconfig::Contexts),
    /// Each hop to a cluster, with times, and the one that fails
    Probe(probe::Probe),
    /// Whether hub, gateway, tunnel and clusters are as they should be
    Check(check::Check),
    /// A page with the clusters, in your browser
    Dashboard(dashboard::Dashboard),
    /// Install the gateway on the hub, by helm
    Install(install::Install),
    /// Register a member
    Join(Box<join::Join>),
    /// Set or remove labels of a cluster
    Label(label::Label),
    /// Set the name users know a cluster by
    Alias(label::Alias),
    /// Register a cluster by another name
    Rename(rename::Rename),
    /// Give a cluster a new token, and end the old one
    Rotate(rotate::Rotate),
    /// Take a cluster from the hub, and what `join` made from the member
    Detach(detach::Detach),
    /// A script that completes commands in a shell
    Completion(completion::Completion),
}

// === impl Cli ===

impl Cli {
    /// Whether the command makes or removes anything in more than one step.
    pub fn changes(&self) -> bool {
        use Command::{Detach, Install, Join, Rename, Rotate};
        matches!(self.command, Join(_) | Rename(_) | Rotate(_) | Detach(_) | Install(_))
    }
}

/// Runs a command; what it returns is what the process ends with.
pub async fn run(cli: Cli) -> Result<ExitCode> {
    let Cli { options, command } = cli;
    match &command {
        Command::Completion(completion) => return completion.run(),
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
    fn the_command_line_is_sound_and_each_command_has_examples() {
        Cli::command().debug_assert();
        let all = Cli::command();
        for command in all.get_subcommands().chain([&all]) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("kubectl clusters"), "{}: {help}", command.get_name());
        }
    }
}
