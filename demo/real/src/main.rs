//! Shows the whole product on real control planes of this machine, step by step, and leaves it
//! running for the user to try.

use std::{io, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use demo::{report::Tally, signals::Signals};
use demo_real::{Ending, Session};
use tokio::time::timeout;

/// How long control planes may take to end, or to be abandoned while they start. They go with this
/// process anyway, only their files do not.
const PATIENCE: Duration = Duration::from_secs(15);

/// Shows Cluster Gateway on real control planes of this machine: a hub and a member, each with
/// etcd, kube-apiserver and the rest, built from Go modules on the first run (some minutes; needs
/// Go 1.26)
#[derive(Debug, Parser)]
#[command(name = "demo-real", max_term_width = 120)]
struct Args {
    /// Run the steps and exit; fails if a step fails
    #[arg(long)]
    once: bool,
    /// Show the gateway's log at this level and above
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(tally) => tally.code(),
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the user must see why, even without logs")]
            {
                eprintln!("demo-real: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<Tally> {
    if let Some(level) = &args.log_level {
        telemetry::logs::start(level, telemetry::logs::Format::Text)?;
    }
    // Before anything is started: a signal must not leave credentials behind in a file.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let mut session = Session::start(if args.once { Ending::Steps } else { Ending::Asked }, io::stdout())?;
    tokio::select! {
        outcome = session.outcome() => return outcome,
        () = signals.any() => {}
    }
    // The result of an interrupted session does not matter: Ctrl-C has also ended the programs it
    // was waiting for.
    drop(timeout(PATIENCE, session.stop()).await);
    Ok(Tally::default())
}
