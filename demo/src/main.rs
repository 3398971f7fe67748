//! Shows the whole product on one machine: starts sample clusters and a gateway, goes through its
//! features step by step, and leaves it running for the user to try. It needs nothing else, and
//! leaves nothing behind. `demo-real` does the same with real control planes.

use std::{io, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use demo::{installation::Installation, report::Report, signals::Signals};

/// Shows Cluster Gateway on this machine: sample clusters, a gateway, and a kubeconfig to try
#[derive(Debug, Parser)]
#[command(name = "demo", max_term_width = 120)]
struct Args {
    /// Run the steps and exit; fails if a step fails
    #[arg(long)]
    once: bool,
    /// Port of 127.0.0.1 for the gateway; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Show the gateway's log at this level and above
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the user must see why, even without logs")]
            {
                eprintln!("demo: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<ExitCode> {
    if let Some(level) = &args.log_level {
        telemetry::logs::start(level, telemetry::logs::Format::Text)?;
    }
    // Before anything is started: a signal must not leave credentials behind in a file.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let installation = Installation::start(args.port).await?;
    let outcome = tokio::select! {
        outcome = show(args, &installation) => outcome,
        () = signals.any() => Ok(ExitCode::SUCCESS),
    };
    installation.stop().await?;
    outcome
}

/// Goes through the steps, then waits for the user to end the demo, unless it is to end by itself.
async fn show(args: &Args, installation: &Installation) -> Result<ExitCode> {
    let mut report = Report::new(io::stdout());
    report.introduce(installation)?;
    let tally = report.steps(&installation.tour).await?;
    if !args.once {
        report.invite(installation)?;
        std::future::pending::<()>().await;
    }
    Ok(tally.code())
}
