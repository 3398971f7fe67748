//! `kubectl clusters`: join, see and use the clusters behind a gateway.
//!
//! It talks to the hub with the person's own kubeconfig and knows the gateway by its API only. What
//! is decided is decided in modules without IO; commands read, ask them, and write.

mod account;
mod agent;
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
mod mark;
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
mod room;
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

/// How a shell tells of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Runs what the command line says, and returns what the process ends with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::fail(&trouble::Trouble::failed(format!("cannot start: {error}"), "")),
    };
    let code = runtime.block_on(until_interrupted(cli));
    // Reads of standard input and lookups of names cannot be cancelled, and nobody waits for them.
    runtime.shutdown_background();
    code
}

async fn until_interrupted(cli: Cli) -> ExitCode {
    let (changes, ends_by_itself) = (cli.changes(), cli.ends_by_itself());
    let mut command = pin!(command::run(cli));
    tokio::select! {
        outcome = &mut command => match outcome {
            Ok(code) => code,
            Err(trouble) => output::fail(&trouble),
        },
        _ = ctrl_c() => {
            if ends_by_itself && let Ok(Err(trouble)) = timeout(2 * helm::GRACE, command).await {
                // Below what the terminal shows for Ctrl-C.
                output::say("");
                output::fail(&trouble);
            }
            interrupted(changes)
        }
    }
}

/// A command that `changes` something may have done half of it.
fn interrupted(changes: bool) -> ExitCode {
    if changes {
        // Below what the terminal shows for Ctrl-C.
        output::say("");
        output::say("interrupted: what was created stays; run the same command again to complete it");
    }
    ExitCode::from(INTERRUPTED)
}
