//! Runs plugins: which may run, how many at a time, for how long, and what their answer means.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::command::{self, Commands};
use crate::credential::Issued;
use crate::error::ExecError;
use crate::output;
use crate::process::{self, Invocation, MOST_STDOUT, RunError};
use crate::redact::Redaction;
use crate::request::Request;

/// Plugins running at a time.
pub const MOST_RUNNING: usize = 16;
/// Of these, such as failed the last time: programs that hang leave room for those that do not.
const MOST_SUSPECT: usize = 4;

/// The environment variable by which a plugin learns what is asked of it.
const INFO: &str = "KUBERNETES_EXEC_INFO";

/// Issues credentials. A trait because tests of what is kept need issuers that they command.
pub trait Runner: Send + Sync + 'static {
    /// Runs once. Dropping the future ends the run.
    fn run(&self, request: Arc<Request>, standing: Standing) -> BoxFuture<'_, Result<Issued, ExecError>>;
}

/// How the last run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    Suspect,
}

/// Runs plugins as processes.
pub struct Plugins {
    commands: Commands,
    timeout: Duration,
    places: Semaphore,
    suspect_places: Semaphore,
}

// === impl Plugins ===

impl Plugins {
    /// Each run takes at most `timeout`, and waits as long for others to end.
    pub fn new(commands: Commands, timeout: Duration) -> Self {
        Self { commands, timeout, places: Semaphore::new(MOST_RUNNING), suspect_places: Semaphore::new(MOST_SUSPECT) }
    }

    /// Whether the operator allows it: known without running anything.
    pub fn check(&self, request: &Request) -> Result<(), ExecError> {
        self.commands.check(request.config())
    }

    async fn issue(&self, request: &Request, standing: Standing) -> Result<Issued, ExecError> {
        let config = request.config();
        self.check(request)?;
        let program = command::locate(config)?;
        let busy = |limit| ExecError::Busy { limit, after: self.timeout };
        let place = async {
            let suspect = match standing {
                Standing::Good => None,
                Standing::Suspect => Some(self.suspect_places.acquire().await),
            };
            (suspect, self.places.acquire().await)
        };
        let _place = timeout(self.timeout, place).await.map_err(|_| {
            busy(match standing {
                Standing::Good => MOST_RUNNING,
                Standing::Suspect => MOST_SUSPECT,
            })
        })?;
        let info = request.info();
        let env = config.env.iter().map(|(name, value)| (name.as_str(), value)).chain([(INFO, &info)]).collect();
        let invocation =
            Invocation { program: &program, name: &config.command, args: &config.args, env, timeout: self.timeout };
        let stdout = self.interpret(request, process::run(invocation).await)?;
        let credential = output::parse(stdout.expose_secret(), config.api_version)?;
        Ok(Issued::new(credential, SystemTime::now()))
    }

    /// Its standard output, if it ended well.
    fn interpret(
        &self,
        request: &Request,
        outcome: Result<process::Finished, RunError>,
    ) -> Result<SecretSlice<u8>, ExecError> {
        use std::os::unix::process::ExitStatusExt as _;
        let command = request.config().command.clone();
        let words = |stderr: &[u8]| {
            let words = Redaction::of(request).last_words(stderr);
            if words.is_empty() { words } else { format!(": {words}") }
        };
        match outcome {
            Ok(process::Finished { status, stdout, .. }) if status.success() => Ok(stdout.into()),
            Ok(process::Finished { status, stderr, .. }) => Err(match (status.code(), status.signal()) {
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
