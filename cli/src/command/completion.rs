//! `completion`: how shells and kubectl complete commands.

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, ValueEnum};
use clap_complete::Shell;
use tokio::time::timeout;

use super::Cli;
use crate::completion::{Suggestions, suggestions};
use crate::output;
use crate::session::{Options, Session};
use crate::trouble::Result;

/// Time for listing the hub's clusters, everything included: the user waits for each completion.
const WITHIN: Duration = Duration::from_secs(1);
/// The program that kubectl asks.
const ASKED: &str = "\
#!/bin/sh
# kubectl runs this to complete `kubectl clusters`. It must be in PATH as kubectl_complete-clusters.
exec kubectl-clusters completion kubectl -- \"$@\"
";
/// What a shell offers besides our words (cobra, `ShellCompDirective`): nothing, or files.
const DIRECTIVES: (&str, &str) = (":4", ":0");

/// Complete commands, options and names of clusters.
///
/// For kubectl, prints a program that must be in PATH as `kubectl_complete-clusters`: kubectl then
/// completes `kubectl clusters`, cluster names included. For a shell, prints a script that
/// completes commands and options of `kubectl-clusters`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters completion kubectl > ~/.local/bin/kubectl_complete-clusters
  chmod +x ~/.local/bin/kubectl_complete-clusters
  source <(kubectl-clusters completion bash)")]
pub struct Completion {
    /// What to complete for: kubectl, or a shell
    #[arg(value_name = "PROGRAM")]
    by: By,
    /// Words of the command line, as kubectl passes them
    #[arg(last = true, hide = true)]
    words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Kubectl,
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

// === impl By ===

impl By {
    fn shell(self) -> Option<Shell> {
        match self {
            Self::Kubectl => None,
            Self::Bash => Some(Shell::Bash),
            Self::Elvish => Some(Shell::Elvish),
            Self::Fish => Some(Shell::Fish),
            Self::Powershell => Some(Shell::PowerShell),
            Self::Zsh => Some(Shell::Zsh),
        }
    }
}

// === impl Completion ===

impl Completion {
    pub async fn run(&self, options: &Options) -> Result<ExitCode> {
        let text = match self.by.shell() {
            Some(shell) => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "kubectl-clusters", &mut script);
                String::from_utf8_lossy(&script).into_owned()
            }
            None if self.words.is_empty() => ASKED.to_owned(),
            None => self.offered(options).await,
        };
        output::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// One word with its description per line, and then the directive for the shell.
    async fn offered(&self, options: &Options) -> String {
        let mut root = Cli::command();
        root.build();
        let (nothing, files) = DIRECTIVES;
        let (words, directive) = match suggestions(&root, &self.words) {
            Suggestions::Words(words) => (words, nothing),
            Suggestions::Cluster { before } => {
                let names = timeout(WITHIN, names(&self.words, options)).await.ok().flatten().unwrap_or_default();
                (names.into_iter().map(|name| (before.clone() + &name, String::new())).collect(), nothing)
            }
            Suggestions::Files => (Vec::new(), files),
            Suggestions::Nothing => (Vec::new(), nothing),
        };
        let last = self.words.last().map(String::as_str).unwrap_or_default();
        let fitting = words.iter().filter(|(word, _)| word.starts_with(last));
        let line = |(word, meaning): &(String, String)| match &**meaning {
            "" => format!("{word}\n"),
            meaning => format!("{word}\t{meaning}\n"),
        };
        fitting.map(line).collect::<String>() + directive + "\n"
    }
}

/// Names of clusters on the hub that the command line selects. A failure is not reported, because
/// the user is still typing.
async fn names(words: &[String], options: &Options) -> Option<Vec<String>> {
    let value = |flag: &str| {
        let mut words = words.iter();
        let word =
            words.find(|word| word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))?;
        word.split_once('=').map(|(_, value)| value.to_owned()).or_else(|| words.next().cloned())
    };
    let session = Session::open(Options {
        kubeconfig: value("--kubeconfig").map(Into::into),
        context: value("--context"),
        request_timeout: WITHIN,
        ..options.clone()
    });
    let clusters = session.await.ok()?.fleet.clusters("").await.ok()?;
    Some(clusters.into_iter().map(|cluster| cluster.name.to_string()).collect())
}
