//! `kubectl clusters`: join, see and use the clusters behind a gateway.
//!
//! It talks to the hub with the person's own kubeconfig, and uses only the API of the gateway.
//! Modules without IO make the decisions; commands read, ask these modules, and write.

mod account;
mod agent;
mod bytes_left;
mod charts;
mod claim;
mod command;
mod completion;
mod contexts;
mod crossing;
mod dashboard;
mod expiry;
mod findings;
mod helm;
mod hops;
mod look;
mod member;
mod namespace;
mod needs;
mod output;
mod own;
mod progress;
mod reach;
mod registration;
mod resource;
mod rights;
mod row;
mod selection;
mod servers;
mod serving;
mod session;
mod span;
mod tables;
mod target;
mod text_table;
mod trouble;
mod walk;

use std::pin::pin;
use std::process::ExitCode;

use clap::Parser as _;

use tokio::signal::ctrl_c;
use tokio::time::timeout;

use crate::command::Cli;

/// Exit code that shells give to a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Runs the command line. Returns the exit code of the process.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::fail(&trouble::Trouble::failed(format!("cannot start: {error}"), "")),
    };
    let code = runtime.block_on(until_interrupted(cli));
    // Does not wait for reads of standard input and lookups of names, which cannot be cancelled.
    runtime.shutdown_background();
    code
}

async fn until_interrupted(cli: Cli) -> ExitCode {
    let (changes, ends_by_itself, interrupted) = (cli.changes(), cli.ends_by_itself(), cli.interrupted());
    let mut command = pin!(command::run(cli));
    match or_interrupted(&mut command).await {
        Some(Ok(code)) => code,
        Some(Err(trouble)) => output::fail(&trouble),
        None => {
            interrupted.cancel();
            if ends_by_itself && let Ok(Err(trouble)) = timeout(2 * helm::GRACE, command).await {
                // Starts a new line below the terminal's own output for Ctrl-C.
                output::say("");
                output::fail(&trouble);
            }
            interrupted_code(changes)
        }
    }
}

/// The outcome of `command`. `None`: Ctrl-C came first.
///
/// Polls for Ctrl-C first, each time: a command may do much before it first waits. A Ctrl-C before
/// this listens would be lost, or would end the process and leave its files behind.
async fn or_interrupted<F: Future>(command: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        _ = ctrl_c() => None,
        outcome = command => Some(outcome),
    }
}

/// Returns the exit code. A command that `changes` something may have done half of it.
fn interrupted_code(changes: bool) -> ExitCode {
    if changes {
        // Starts a new line below the terminal's own output for Ctrl-C.
        output::say("");
        output::say("interrupted: what was created stays; run the same command again to complete it");
    }
    ExitCode::from(INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::process::{Command, id};
    use std::time::Duration;

    use super::*;

    /// Number of runs: without a fixed order, `select!` passes some of them by chance.
    const TRIES: usize = 16;

    #[tokio::test]
    async fn no_interrupt_is_lost_while_a_command_starts() {
        for _ in 0..TRIES {
            let command = async {
                let sent = Command::new("kill").args(["-INT", &id().to_string()]).status();
                assert!(sent.expect("kill").success());
                pending::<()>().await;
            };
            let ended = timeout(Duration::from_secs(30), or_interrupted(command)).await;
            assert_eq!(ended.expect("the interrupt"), None);
        }
    }
}
