//! `cluster-gateway patch`: writes the CA of the gateway's serving certificate into the APIService,
//! from the Secret it is in.
//!
//! For installations whose certificate is created in the cluster after the APIService: KubeVela's
//! chart creates the APIService with a placeholder and runs `/patch` as a Job. Secret, APIService
//! and the Job's own permissions may all come later than the process, so every failure is retried
//! until the timeout, and the last reason is shown.

mod api_service;
mod args;
mod bundle;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use net::backoff::Backoff;
use telemetry::logs;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout_at};

use self::api_service::{Change, PatchError};
pub use self::args::Args;
use crate::hub;

/// Name of the subcommand, and of the program if it is called by a link.
const NAME: &str = "patch";
/// Pauses between attempts: an object that appears is noticed within the longest. Without jitter,
/// because there is only one such process.
const PAUSES: Backoff =
    Backoff { chance: 0.0, ..Backoff::doubling(Duration::from_millis(500), Duration::from_secs(5)) };
/// Timeout of one attempt, with three requests: a hub that hangs is asked again.
const ATTEMPT: Duration = Duration::from_secs(30);

/// The APIService could not be corrected in time.
#[derive(Debug, thiserror::Error)]
#[error("gave up after {patience:?}: {reason}")]
pub struct TimedOut {
    patience: Duration,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    PatchError(PatchError),
    Silence,
}

/// The arguments of `patch`, beginning with its name, if the process was called by a link with this
/// name, or with this name as its first argument.
pub fn requested(arguments: impl IntoIterator<Item = OsString>) -> Option<Vec<OsString>> {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    if program.is_some_and(|name| name == NAME) {
        return Some(arguments);
    }
    (arguments.get(1)? == NAME).then(|| arguments.split_off(1))
}

/// Runs as the process's only purpose, until the APIService is correct, or the timeout, SIGTERM or
/// SIGINT.
pub fn run(arguments: Vec<OsString>) -> anyhow::Result<()> {
    let args = Args::parse_from(arguments).unwrap_or_else(|error| error.exit());
    logs::start("info", logs::Format::Text)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        // A container's first process must handle signals, or they do not end it.
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            done = apply(&args) => done,
            _ = terminate.recv() => Err(anyhow::anyhow!("ended by SIGTERM before the APIService was patched")),
            _ = interrupt.recv() => Err(anyhow::anyhow!("ended by SIGINT before the APIService was patched")),
        }
    })
}

/// Corrects the APIService, or fails after `args.timeout` with the reason.
pub async fn apply(args: &Args) -> anyhow::Result<()> {
    let client = hub::client(args.kubeconfig.as_deref(), hub::PROGRAM).await?;
    until_done(&client, args).await.context("the APIService was not patched")
}

/// Tries until it succeeds, or until `args.timeout` has passed.
async fn until_done(client: &Client, args: &Args) -> Result<(), TimedOut> {
    let deadline = Instant::now() + args.timeout;
    let mut failures = 0;
    let mut reason = Reason::Silence;
    loop {
        let limit = deadline.min(Instant::now() + ATTEMPT);
        match timeout_at(limit, api_service::put_right(client, args)).await {
            Ok(Ok(change)) => {
                report(change, args);
                return Ok(());
            }
            Ok(Err(obstacle)) => {
                tracing::info!("waiting: {obstacle}");
                reason = Reason::PatchError(obstacle);
            }
            Err(_) => {}
        }
        let pause = PAUSES.wait(failures);
        if Instant::now() + pause >= deadline {
            return Err(TimedOut { patience: args.timeout, reason });
        }
        sleep(pause).await;
        failures += 1;
    }
}

fn report(change: Change, args: &Args) {
    let name = &args.api_service;
    match change {
        Change::Patched => tracing::info!(
            "APIService {name} now trusts the certificates in key {:?} of Secret {}/{}",
            args.key,
            args.namespace,
            args.secret
        ),
        Change::None => tracing::info!("APIService {name} already trusts the right certificates"),
    }
}

// === impl Reason ===

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PatchError(obstacle) => obstacle.fmt(f),
            Self::Silence => f.write_str("the hub did not answer: check its address and the network"),
        }
    }
}

#[cfg(test)]
mod tests;
