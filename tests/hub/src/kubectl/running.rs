//! A kubectl that is still running: `get -w`, `logs -f`, `port-forward`.
//!
//! Its lines arrive through a channel, so that a test waits for a line, never for a time.

use std::io::{BufRead as _, BufReader, Read};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

/// Lines that are kept for a test that does not read them yet.
const MAX_LINES: usize = 10_000;

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
    pub(super) fn new(mut child: Child, line: String) -> Self {
        let lines = read_lines(child.stdout.take());
        let errors = read_lines(child.stderr.take());
        Self { child, line, lines, errors }
    }

    /// The next line of standard output.
    pub fn next_line(&mut self, limit: Duration) -> Result<String> {
        self.lines.recv_timeout(limit).map_err(|error| {
            let errors: Vec<String> = self.errors.try_iter().collect();
            anyhow!("`{}` printed no line within {limit:?} ({error}): {}", self.line, errors.join("\n"))
        })
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

fn read_lines(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(MAX_LINES);
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}
