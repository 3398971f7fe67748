//! Runs a program once: with limits on its output and its time, in a process group that ends with
//! the run.
//!
//! The group is killed when the run is aborted: on timeout, on too much output, and when the future
//! is dropped. Processes that a successful program leaves behind are not killed if they have closed
//! its output.

mod group;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use secrecy::SecretString;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use self::group::Group;
pub use self::group::end_all;

/// Most bytes of standard output. A credential with a certificate chain needs a few KiB.
pub(crate) const MOST_STDOUT: usize = 1 << 20;
/// Most bytes kept of standard error. Keeps its end.
pub(crate) const MOST_STDERR: usize = 64 << 10;
/// Time limit for reading after the program's end, because its child processes may hold the output
/// open. The program's own output is read by then.
const LINGER: Duration = Duration::from_secs(1);

/// The program to run. Standard input is empty.
pub(crate) struct Invocation<'a> {
    pub(crate) program: &'a Path,
    /// `argv[0]`.
    pub(crate) name: &'a str,
    pub(crate) args: &'a [String],
    /// Added to the gateway's own environment.
    pub(crate) env: Vec<(&'a str, &'a SecretString)>,
    pub(crate) timeout: Duration,
}

/// The result of a program that ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Why a run has no result.
#[derive(Debug)]
pub(crate) enum RunError {
    Start(io::Error),
    Read(io::Error),
    TooMuchOutput,
    Timeout { stderr: Vec<u8> },
}

/// Runs the program to its end.
pub(crate) async fn run(invocation: Invocation<'_>) -> Result<Finished, RunError> {
    let patience = invocation.timeout;
    let mut child = start(invocation).map_err(RunError::Start)?;
    // Dropped before the child, and so before the process is reaped: until then its number still
    // identifies the group.
    let group = Group::of(&child);
    let (mut stdout, mut stderr) = (Vec::new(), Tail::new(MOST_STDERR));
    match timeout(patience, finish(&mut child, &mut stdout, &mut stderr)).await {
        Ok(Ok(Ended { status, silent })) => {
            // An empty group must not be killed, because its number may belong to another group by
            // now.
            if silent {
                group.leave();
            }
            Ok(Finished { status, stdout, stderr: stderr.into_bytes() })
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Err(RunError::Timeout { stderr: stderr.into_bytes() }),
    }
}

fn start(invocation: Invocation<'_>) -> io::Result<Child> {
    let mut command = Command::new(invocation.program);
    command
        .arg0(invocation.name)
        .args(invocation.args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for (name, value) in invocation.env {
        command.env(name, OsString::from(secrecy::ExposeSecret::expose_secret(value)));
    }
    command.spawn()
}

struct Ended {
    status: ExitStatus,
    /// Whether no process holds the output open.
    silent: bool,
}

async fn finish(child: &mut Child, stdout: &mut Vec<u8>, stderr: &mut Tail) -> Result<Ended, RunError> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = async { tokio::try_join!(collect(out, stdout), follow(err, stderr)) };
    tokio::pin!(reading);
    tokio::select! {
        read = &mut reading => {
            read?;
            let status = child.wait().await.map_err(RunError::Read)?;
            Ok(Ended { status, silent: true })
        }
        status = child.wait() => {
            let status = status.map_err(RunError::Read)?;
            let silent = match timeout(LINGER, &mut reading).await {
                Ok(read) => read.map(|_| true)?,
                Err(_) => false,
            };
            Ok(Ended { status, silent })
        }
    }
}

async fn collect(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), RunError> {
    let Some(pipe) = pipe else { return Ok(()) };
    // Reads one byte beyond the limit, to detect that there is more.
    let limit = u64::try_from(MOST_STDOUT).unwrap_or(u64::MAX).saturating_add(1);
    pipe.take(limit).read_to_end(into).await.map_err(RunError::Read)?;
    if into.len() > MOST_STDOUT { Err(RunError::TooMuchOutput) } else { Ok(()) }
}

async fn follow(pipe: Option<impl AsyncRead + Unpin>, into: &mut Tail) -> Result<(), RunError> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; 4 << 10];
    loop {
        match pipe.read(&mut chunk).await.map_err(RunError::Read)? {
            0 => return Ok(()),
            read => into.push(&chunk[..read]),
        }
    }
}

/// The last bytes of a stream of any length. Holds at most about twice the limit.
struct Tail {
    bytes: Vec<u8>,
    limit: usize,
}

// === impl Tail ===

impl Tail {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Moves bytes once per limit, not once per push.
        if self.bytes.len() > 2 * self.limit {
            self.cut();
        }
    }

    fn into_bytes(mut self) -> Vec<u8> {
        self.cut();
        self.bytes
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.limit);
        self.bytes.drain(..excess);
    }
}

#[cfg(test)]
mod tests;
