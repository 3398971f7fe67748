//! Shows the whole product on one machine: starts sample clusters and a gateway, goes through what it does, step by step,
//! and leaves it running for the user to try. Nothing else is needed, and nothing is left behind.
//! With `--real` the clusters are real control planes.

use std::{io, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use demo::{
    installation::Installation,
    real::{Ending, Session},
    report::{Report, Tally},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

/// How long real control planes may take to end, or to be abandoned while they start. They go with this process anyway,
/// only their files do not.
const REAL_PATIENCE: Duration = Duration::from_secs(15);

/// Shows Cluster Gateway on this machine: sample clusters, a gateway, and a kubeconfig to try
#[derive(Debug, Parser)]
#[command(name = "demo", max_term_width = 120)]
struct Args {
    /// Go through the steps and end; fails if a step fails
    #[arg(long)]
    once: bool,
    /// A real hub and a real member instead of samples: etcd, kube-apiserver and the rest of two control planes, built from
    /// Go modules on the first run (some minutes; needs Go 1.26)
    #[arg(long)]
    real: bool,
    /// Port of 127.0.0.1 for the gateway; 0 takes a free one
    #[arg(long, default_value_t = 0, conflicts_with = "real")]
    port: u16,
    /// Show the gateway's log from this level on
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

/// What asks the demo to end: Ctrl-C, `kill`, or the terminal closing.
struct Signals([Signal; 3]);

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
    if args.real {
        return real(args, &mut signals).await;
    }
    let installation = Installation::start(args.port).await?;
    let outcome = tokio::select! {
        outcome = show(args, &installation) => outcome,
        () = signals.any() => Ok(ExitCode::SUCCESS),
    };
    installation.stop().await?;
    outcome
}

/// Goes through the steps, then waits until somebody ends the demo, unless it is to end by itself.
async fn show(args: &Args, installation: &Installation) -> Result<ExitCode> {
    let mut report = Report::new(io::stdout());
    report.introduce(installation)?;
    let tally = report.steps(&installation.stage).await?;
    if !args.once {
        report.invite(installation)?;
        std::future::pending::<()>().await;
    }
    Ok(code(tally))
}

/// The same with real control planes.
async fn real(args: &Args, signals: &mut Signals) -> Result<ExitCode> {
    let mut session = Session::start(if args.once { Ending::Steps } else { Ending::Asked }, io::stdout())?;
    tokio::select! {
        outcome = session.outcome() => return outcome.map(code),
        () = signals.any() => {}
    }
    // Whatever became of a session that was interrupted: Ctrl-C has also ended the programs it was waiting for.
    drop(timeout(REAL_PATIENCE, session.stop()).await);
    Ok(ExitCode::SUCCESS)
}

fn code(tally: Tally) -> ExitCode {
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

// === impl Signals ===

impl Signals {
    fn listen() -> io::Result<Self> {
        let [interrupt, terminate, hangup] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Ok(Self([signal(interrupt)?, signal(terminate)?, signal(hangup)?]))
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
