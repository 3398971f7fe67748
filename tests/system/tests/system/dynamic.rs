//! Clusters with a credential that a program issues: it runs when it must, and its failure affects
//! no other cluster.
//!
//! The programs are shell scripts that count their runs in a directory of their own.

mod certificates;
mod failures;
mod lifetimes;
mod permissions;
mod rejections;
mod sharing;
mod tokens;

use std::path::Path;

use system_tests::prelude::*;
use tempfile::TempDir;

const V1: &str = "client.authentication.k8s.io/v1";
/// A path of the members.
const PATH: &str = "/api/v1/nodes";

/// A program that issues credentials.
struct Plugin {
    directory: TempDir,
    /// The `exec` key.
    config: Value,
}

// === impl Plugin ===

impl Plugin {
    /// A shell script. Its `$DIR` is a directory of its own, its `$RUN` the number of this run,
    /// from 1.
    fn new(body: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory for temporary files");
        // Written whole before it is counted: a test that sees the count sees the number.
        let count = "echo $$ >> $DIR/runs; RUN=$(wc -l < $DIR/runs); RUN=$((RUN))";
        let script = format!("DIR={}; {count}\n{body}", directory.path().display());
        let config = json!({"apiVersion": V1, "command": "sh", "args": ["-c", script], "interactiveMode": "Never"});
        Self { directory, config }
    }

    /// Issues `token-1`, `token-2` and so on, with `more` fields of a status.
    fn tokens(more: &str) -> Self {
        Self::new(&issue(more))
    }

    /// Changes a field of the configuration.
    fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config[field] = value.into();
        self
    }

    /// The Secret of a cluster at `member` that this issues the credential for.
    fn secret(&self, name: &str, member: &FakeMember) -> ClusterSecret {
        cluster(name, member).credential_type("Dynamic").data("exec", self.config.to_string())
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process ids of the runs.
    fn processes(&self) -> Vec<String> {
        let written = std::fs::read_to_string(self.directory().join("runs")).unwrap_or_default();
        // The last line may be half written.
        let (whole, _) = written.rsplit_once('\n').unwrap_or_default();
        whole.lines().map(str::to_owned).collect()
    }

    fn runs(&self) -> usize {
        self.processes().len()
    }

    /// Waits until it runs for the `count`th time.
    async fn running(&self, count: usize) {
        eventually(WAIT, || self.runs() >= count).await;
    }

    /// Waits until none of its processes lives.
    async fn ended(&self) {
        eventually(WAIT, || !self.processes().iter().any(|process| lives(process))).await;
    }
}

/// Asserts that it ran once a second at most since `started`, however many requests came meanwhile.
#[track_caller]
fn assert_runs_now_and_then(plugin: &Plugin, started: Instant) {
    let seconds = started.elapsed().as_secs();
    let runs = plugin.runs();
    assert!(u64::try_from(runs).is_ok_and(|runs| runs <= 2 + seconds), "{runs} runs in {seconds} s");
}

/// Shell words that issue `token-$RUN`, with `more` fields of a status.
fn issue(more: &str) -> String {
    format!(r#"printf '{{"apiVersion":"{V1}","kind":"ExecCredential","status":{{"token":"token-%s"{more}}}}}' $RUN"#)
}

/// The process exists and is no zombie.
fn lives(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A member that answers everything.
async fn member(options: MemberOptions) -> FakeMember {
    let member = FakeMember::start(options).await;
    member.on_any(|_| Reply::full(200, &[], ""));
    member
}

/// The credentials that the member's requests carried, in order.
fn seen(member: &FakeMember) -> Vec<String> {
    let header = |request: &kit::member::Recorded| request.header("authorization").unwrap_or_default().to_owned();
    member.requests().iter().map(header).collect()
}
