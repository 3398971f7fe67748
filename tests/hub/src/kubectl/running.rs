//! A kubectl that is still running: `get -w`, `logs -f`, `port-forward`.
//!
//! Its lines arrive through a channel, so that a test waits for a line, never for a time.

use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kit::process::lines;

/// A started kubectl; killed on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    line: String,
    lines: mpsc::Receiver<String>,
    errors: mpsc::Receiver<String>,
}

// === impl Running ===

impl Running {
    pub(super) fn new(mut child: Child, line: String) -> Result<Self> {
        let (stdout, stderr) = child.stdout.take().zip(child.stderr.take()).context("no pipes")?;
        Ok(Self { child, line, lines: lines(stdout), errors: lines(stderr) })
    }

    /// The next line of standard output.
    pub fn next_line(&mut self, limit: Duration) -> Result<String> {
        self.lines.recv_timeout(limit).map_err(|error| {
            let errors: Vec<String> = self.errors.try_iter().collect();
            anyhow!("`{}` printed no line within {limit:?} ({error}): {}", self.line, errors.join("\n"))
        })
    }

    /// Sends it `INT`, or another signal.
    pub fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status()?;
        ensure!(status.success(), "kill -{name}: {status}");
        Ok(())
    }

    /// Waits until it has ended by itself, and returns its exit code.
    pub fn wait(mut self, limit: Duration) -> Result<i32> {
        loop {
            match self.lines.recv_timeout(limit) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(self.child.wait()?.code().unwrap_or(-1)),
                Err(mpsc::RecvTimeoutError::Timeout) => bail!("`{}` was not done after {limit:?}", self.line),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
