//! Runs plugins: which ones may run, how many at a time, for how long, and how to read their
//! output.

mod permits;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::time::{Instant, timeout_at};

use self::permits::{FIRST_TRY, Permit, Permits};
pub use self::permits::{MOST_RUNNING, Standing};
use crate::command::{self, Commands};
use crate::credential::Issued;
use crate::error::ExecError;
use crate::output;
use crate::process::{self, Finished, Invocation, MOST_STDOUT, RunError};
use crate::redact::Redaction;
use crate::request::Request;

/// The environment variable with the request to a plugin.
const INFO: &str = "KUBERNETES_EXEC_INFO";

/// Issues credentials. A trait, because tests of the cache need issuers that they control.
pub trait Runner: Send + Sync + 'static {
    /// Runs the plugin once. Dropping the future ends the run.
    fn run(&self, request: Arc<Request>, standing: Standing) -> BoxFuture<'_, Result<Issued, ExecError>>;
}

/// Runs plugins as processes.
pub struct Plugins {
    commands: Commands,
    timeout: Duration,
    first_try: Duration,
    permits: Permits,
}

// === impl Plugins ===

impl Plugins {
    /// Each run takes at most `timeout`, and waits as long for others to end. A first try may
    /// precede it.
    pub fn new(commands: Commands, timeout: Duration) -> Self {
        Self { commands, timeout, first_try: FIRST_TRY, permits: Permits::new() }
    }

    /// Whether the operator allows the plugin. Runs nothing.
    pub fn check(&self, request: &Request) -> Result<(), ExecError> {
        self.commands.check(request.config())
    }

    async fn issue(&self, request: &Request, mut standing: Standing) -> Result<Issued, ExecError> {
        self.check(request)?;
        let program = command::locate(request.config())?;
        let waiting = Instant::now() + self.timeout;
        loop {
            let permit = timeout_at(waiting, self.permits.get(standing)).await.map_err(|_| self.busy(standing))?;
            let patience = match &permit {
                Permit::FirstTry { .. } => self.timeout.min(self.first_try),
                Permit::Whole { .. } => self.timeout,
            };
            match self.run_once(request, &program, patience).await {
                Err(RunError::Timeout { .. }) if patience < self.timeout => standing = Standing::Slow,
                outcome => {
                    let stdout = self.interpret(request, outcome)?;
                    let credential = output::parse(stdout.expose_secret(), request.config().api_version)?;
                    return Ok(Issued::new(credential, SystemTime::now()));
                }
            }
        }
    }

    async fn run_once(&self, request: &Request, program: &Path, patience: Duration) -> Result<Finished, RunError> {
        let (config, info) = (request.config(), request.info());
        let env = config.env.iter().map(|(name, value)| (name.as_str(), value)).chain([(INFO, &info)]).collect();
        let (name, args) = (config.command.as_str(), config.args.as_slice());
        process::run(Invocation { program, name, args, env, timeout: patience }).await
    }

    fn busy(&self, standing: Standing) -> ExecError {
        ExecError::Busy { limit: standing.limit(), after: self.timeout, slow: standing == Standing::Slow }
    }

    /// The standard output of a successful run.
    fn interpret(&self, request: &Request, outcome: Result<Finished, RunError>) -> Result<SecretSlice<u8>, ExecError> {
        use std::os::unix::process::ExitStatusExt as _;
        let command = request.config().command.clone();
        let words = |stderr: &[u8]| {
            let words = Redaction::of(request).last_words(stderr);
            if words.is_empty() { words } else { format!(": {words}") }
        };
        match outcome {
            Ok(Finished { status, stdout, .. }) if status.success() => Ok(stdout.into()),
            Ok(Finished { status, stderr, .. }) => Err(match (status.code(), status.signal()) {
                (None, Some(signal)) => ExecError::Signal { command, signal, stderr: words(&stderr) },
                (code, _) => ExecError::ExitCode { command, code: code.unwrap_or(-1), stderr: words(&stderr) },
            }),
            Err(RunError::Start(source)) => Err(ExecError::Start { command, source }),
            Err(RunError::Read(source)) => Err(ExecError::Read { command, source }),
            Err(RunError::TooMuchOutput) => Err(ExecError::TooMuchOutput { command, limit: MOST_STDOUT }),
            Err(RunError::Timeout { stderr }) => {
                Err(ExecError::Timeout { command, after: self.timeout, stderr: words(&stderr) })
            }
        }
    }
}

impl Runner for Plugins {
    fn run(&self, request: Arc<Request>, standing: Standing) -> BoxFuture<'_, Result<Issued, ExecError>> {
        Box::pin(async move { self.issue(&request, standing).await })
    }
}

#[cfg(test)]
mod tests;
