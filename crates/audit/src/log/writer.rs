//! Writes events to an output that may fail: it writes nothing twice, half a line does not corrupt
//! the next one, and a full disk does not flood the process's own log too.

use std::io::{self, Write};
use std::time::Duration;

use net::words;
use tokio::time::Instant;

use super::Metrics;
use super::queue::Batch;

/// Approximate size in bytes of one write.
const PIECE: usize = 64 * 1024;
/// Least time between two complaints about writing.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);

/// The destination of lines.
pub trait Output: Send + 'static {
    /// Prepares for `bytes` bytes of complete lines.
    fn prepare(&mut self, _bytes: usize) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
}

/// The process's standard output, written in one piece at a time.
#[derive(Debug)]
pub struct Stdout;

/// Writes batches to an output.
#[derive(Debug)]
pub struct Writer<O> {
    output: O,
    metrics: Metrics,
    piece: Vec<u8>,
    /// The end of each line in `piece`.
    ends: Vec<usize>,
    /// Whether the last written line is incomplete.
    torn: bool,
    complained: Option<Instant>,
}

// === impl Stdout ===

impl Output for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write(bytes)?;
        stdout.flush().map(|()| written)
    }
}

// === impl Writer ===

impl<O: Output> Writer<O> {
    pub fn new(output: O, metrics: Metrics) -> Self {
        Self { output, metrics, piece: Vec::new(), ends: Vec::new(), torn: false, complained: None }
    }

    pub fn write(&mut self, batch: &mut Batch) {
        for event in batch.drain(..) {
            if self.piece.is_empty() && self.torn {
                self.piece.push(b'\n');
            }
            event.write_line(&mut self.piece);
            self.ends.push(self.piece.len());
            if self.piece.len() >= PIECE {
                self.hand_over();
            }
        }
        if !self.ends.is_empty() {
            self.hand_over();
        }
        // Free the memory of one event with a huge user.
        self.piece.shrink_to(2 * PIECE);
    }

    fn hand_over(&mut self) {
        if let Err(error) = self.output.prepare(self.piece.len()) {
            self.complain(&error, "cannot rotate the audit log, continuing in the same file");
        }
        let (written, failure) = write_all(&mut self.output, &self.piece);
        let whole = self.ends.partition_point(|end| *end <= written);
        self.metrics.written.inc_by(whole as u64);
        if written > 0 {
            // A newline that ends a torn line comes first.
            let begin = usize::from(self.piece.first() == Some(&b'\n'));
            self.torn = whole.checked_sub(1).map_or(begin, |last| self.ends[last]) != written;
        }
        if let Some(error) = failure {
            self.metrics.write_errors.inc_by((self.ends.len() - whole) as u64);
            self.complain(&error, "audit events cannot be written and are lost");
        }
        self.piece.clear();
        self.ends.clear();
    }

    fn complain(&mut self, error: &io::Error, what: &'static str) {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::error!(error = words::io(error), "{what}");
        }
    }
}

/// Returns the number of bytes written, and the error if not all were.
fn write_all(output: &mut impl Output, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut written = 0;
    while written < bytes.len() {
        match output.write(&bytes[written..]) {
            Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}
