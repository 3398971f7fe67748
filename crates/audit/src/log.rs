//! The audit log: a bounded queue, the thread that writes it to a target, and its counters.

mod file;
mod queue;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use self::file::RotatingFile;
use self::queue::Queue;
use self::writer::{Output, Stdout, Writer};
use crate::event::Event;

/// How long closing waits for the queue to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

/// Where to write, and how much to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub target: Target,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Stdout,
    File(FileConfig),
}

/// A file with the rotation of `gopkg.in/natefinch/lumberjack`, the library behind kube-apiserver's
/// flags of these names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConfig {
    /// The file's path. Its directory must exist.
    pub path: PathBuf,
    /// Size in bytes at which the file is renamed and a new one started.
    pub max_size: u64,
    /// Most renamed files to keep. 0 keeps all.
    pub max_backups: usize,
    /// How long renamed files are kept. Zero keeps them forever.
    pub max_age: Duration,
}

/// Counters of the audit log. Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) written: Counter,
    pub(crate) dropped: Counter,
    pub(crate) write_errors: Counter,
}

/// Why the log cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("audit log: the directory of {} does not exist: create it, or mount a volume there", .0.display())]
    NoDirectory(PathBuf),
    #[error("audit log: cannot append to {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("audit log: cannot start its thread")]
    Thread(#[source] io::Error),
}

/// An open log. Dropping it writes the queue, for a bounded time.
#[derive(Debug)]
pub struct Log {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

/// Accepts events from any thread without waiting. Clones share the queue.
#[derive(Debug, Clone)]
pub struct Sink(Arc<Queue>);

// === impl Log ===

impl Log {
    pub fn start(config: &Config, metrics: Metrics) -> Result<Self, OpenError> {
        match &config.target {
            Target::Stdout => Self::on(Stdout, metrics),
            Target::File(file) => Self::on(RotatingFile::open(file.clone())?, metrics),
        }
    }

    fn on(output: impl Output, metrics: Metrics) -> Result<Self, OpenError> {
        let queue = Arc::new(Queue::new(metrics.clone()));
        let mut writer = Writer::new(output, metrics);
        let events = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || events.consume(|batch| writer.write(batch)))
            .map_err(OpenError::Thread)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    pub fn sink(&self) -> Sink {
        Sink(Arc::clone(&self.queue))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !self.queue.close(FLUSH_WITHIN) {
            // The thread hangs in a write, and ends with the process.
            return tracing::warn!(after = ?FLUSH_WITHIN, "audit events were not written");
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// === impl Sink ===

impl Sink {
    /// Queues an event, or drops and counts it, because a request must not wait for a disk.
    pub fn record(&self, event: Box<Event>) {
        self.0.push(event);
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers `cluster_gateway_audit_events_written_total`, `…_dropped_total` and
    /// `…_write_errors_total`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, counter) in [
            ("written", "Audit events written", &metrics.written),
            ("dropped", "Audit events dropped because the queue was full or closed", &metrics.dropped),
            ("write_errors", "Audit events lost because they could not be written", &metrics.write_errors),
        ] {
            registry.register(format!("cluster_gateway_audit_events_{name}"), help, counter.clone());
        }
        metrics
    }
}

#[cfg(test)]
mod tests;
