//! client-go's informer on a resource of the gateway's group, as a child process that reports its
//! cache (`tools/informer/main.go`).

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kit::process::lines;
use serde::Deserialize;

use crate::process::PROXY_VARIABLES;

/// Time for an answer from memory.
const LIMIT: Duration = Duration::from_secs(20);

/// The cache's fields of one object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// The member's URL.
    pub endpoint: String,
}

/// A cache: entries by name.
pub type Cache = BTreeMap<String, Entry>;

/// The content of the cache, and the events that led to it.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// Whether the initial list is in.
    pub synced: bool,
    /// The cache.
    pub items: Cache,
    /// Requests for a list.
    pub lists: u64,
    /// Watches that asked for the initial events (`sendInitialEvents`).
    pub streams: u64,
    /// Watches from a resource version on.
    pub watches: u64,
    /// Answers and events with code 410.
    pub expired: u64,
    /// Answers with any other code of 400 and more.
    pub failures: u64,
    /// Bookmark events.
    pub bookmarks: u64,
    /// How often the cache notified a handler of an object with a new resource version.
    pub updated: u64,
    /// How often the cache notified a handler of a deleted object.
    pub deleted: u64,
}

/// A running informer; killed on drop.
#[derive(Debug)]
pub struct Informer {
    child: Child,
    stdin: ChildStdin,
    lines: mpsc::Receiver<String>,
}

// === impl Informer ===

impl Informer {
    /// Starts `program` for `resource`, with the server and the credential of `kubeconfig`. Its
    /// standard error goes to the file `log`.
    pub fn start(program: &Path, kubeconfig: &Path, resource: &str, log: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(kubeconfig).args(["--resource", resource]);
        for variable in PROXY_VARIABLES {
            command.env_remove(variable);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(std::fs::File::create(log)?);
        let mut child = command.spawn().context("cannot start the informer")?;
        let (stdin, stdout) = (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
        Ok(Self { child, stdin, lines: lines(stdout) })
    }

    /// The current content of its cache.
    pub fn report(&mut self) -> Result<Report> {
        self.stdin.write_all(b"\n").context("the informer has ended")?;
        let line = self.lines.recv_timeout(LIMIT).map_err(|error| anyhow!("the informer does not answer: {error}"))?;
        serde_json::from_str(&line).with_context(|| format!("not a report: {line}"))
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
