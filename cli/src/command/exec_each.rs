//! `exec-each`: a command of this machine, once for each of many clusters.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::{Event, Failure, Limits};
use futures_util::StreamExt as _;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::get::failed;
use crate::progress::Line;
use crate::selection::Selection;
use crate::session::{AT_ONCE, Session};
use crate::trouble::{Result, Trouble};
use crate::{contexts, output, span};

/// What is kept of what a command prints for one cluster, in bytes of each stream.
const LONGEST: usize = 4 << 20;

/// Runs a command with KUBECONFIG leading to the cluster, through the hub as you, and CLUSTER
/// holding its name; 16 at a time. It reads nothing from standard input. What it prints is shown by
/// cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters exec-each --all -- kubectl get nodes
  kubectl clusters exec-each -l env=prod -- kubectl -n web rollout status deployment/shop
  kubectl clusters exec-each berlin,munich --prefix -- sh -c 'kubectl version -o json | jq .serverVersion'")]
pub struct ExecEach {
    /// NAME,NAME: clusters
    clusters: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Put the cluster's name before each line, in place of a heading
    #[arg(long)]
    prefix: bool,
    /// For one cluster
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = span::parse)]
    timeout: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a command came to.
struct Done {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// `None`: a signal ended it.
    code: Option<i32>,
}

// === impl ExecEach ===

impl ExecEach {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let clusters = self.selection.resolve(session, self.clusters.as_deref()).await?;
        let directory = tempfile::tempdir()
            .map_err(|error| Trouble::failed(format!("no place for files: {error}"), "see TMPDIR"))?;
        let limits = Limits { at_once: AT_ONCE, within: self.timeout };
        let own = own_files(session);
        let mut all = fleet::each(clusters, limits, |cluster| self.one(session, &directory, own.as_ref(), cluster));
        let mut line = Line::new("done");
        let (mut waiting, mut next, mut failures) = (BTreeMap::new(), 0, Vec::new());
        while let Some(event) = all.next().await {
            line.tell(all.progress(), &event);
            if let Event::Finished(outcome) = event {
                waiting.insert(outcome.place, outcome);
            }
            // In the order of the clusters, as soon as it is the turn of each.
            while let Some(outcome) = waiting.remove(&next) {
                next += 1;
                match outcome.result {
                    Ok(done) => {
                        line.clear();
                        self.show(&outcome.cluster, &done)?;
                        failures.extend(done.failure().map(|failure| failure.at(&outcome.cluster)));
                    }
                    Err(failure) => failures.push(failure),
                }
            }
        }
        drop(line);
        Ok(failed(&failures))
    }

    async fn one(
        &self,
        session: &Session,
        directory: &TempDir,
        own: Option<&OsString>,
        cluster: ClusterName,
    ) -> std::result::Result<Done, Failure> {
        let told = |error: &dyn std::fmt::Display| Failure::own(error.to_string());
        let file = kubeconfig(session, directory.path(), &cluster).map_err(|trouble| Failure::own(trouble.what))?;
        // Its own file first: it says which context is meant, and the person's have the credential.
        let mut files = file.into_os_string();
        if let Some(own) = own {
            files.push(LIST_SEPARATOR);
            files.push(own);
        }
        let (program, arguments) = self.command.split_first().ok_or_else(|| told(&"no command"))?;
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", files).env("CLUSTER", cluster.as_str()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| told(&format!("cannot run {}: {error}", program.display())))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr, status) = tokio::join!(kept(stdout), kept(stderr), child.wait());
        let code = status.map_err(|error| told(&error))?.code();
        Ok(Done { stdout: stdout.map_err(|error| told(&error))?, stderr: stderr.map_err(|error| told(&error))?, code })
    }

    fn show(&self, cluster: &ClusterName, done: &Done) -> Result<()> {
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let prefixed =
            |text: &str| text.lines().flat_map(|line| [cluster.as_str(), ": ", line, "\n"]).collect::<String>();
        if self.prefix {
            output::print(&prefixed(&out))?;
            output::say_lines(&prefixed(&err));
            return Ok(());
        }
        let end = if out.is_empty() || out.ends_with('\n') { "" } else { "\n" };
        output::print(&format!("==> {cluster} <==\n{out}{end}"))?;
        output::say_lines(&err);
        Ok(())
    }
}

// === impl Done ===

impl Done {
    fn failure(&self) -> Option<Failure> {
        match self.code {
            Some(0) => None,
            Some(code) => Some(Failure::own(format!("the command ended with exit code {code}"))),
            None => Some(Failure::own("a signal ended the command")),
        }
    }
}

#[cfg(unix)]
const LIST_SEPARATOR: &str = ":";
#[cfg(not(unix))]
const LIST_SEPARATOR: &str = ";";

/// What the command reads beside its cluster's file: what was read here.
fn own_files(session: &Session) -> Option<OsString> {
    let given = session.options.kubeconfig.as_ref().map(|file| file.clone().into_os_string());
    let listed = || std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    let home = || Some(std::env::home_dir()?.join(".kube/config").into_os_string());
    let files = given.or_else(listed).or_else(home)?;
    // The command may run elsewhere.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    std::env::join_paths(std::env::split_paths::<OsStr>(&files).map(absolute)).ok()
}

/// A kubeconfig whose current context is the cluster's; its user is the hub's, by name.
fn kubeconfig(session: &Session, directory: &Path, cluster: &ClusterName) -> Result<PathBuf> {
    let context = contexts::named(&session.kubeconfig, Some(&session.context))?;
    let call = |cluster: &ClusterName| format!("kubectl-clusters/{cluster}");
    let mut made = contexts::through(&session.kubeconfig, context, std::slice::from_ref(cluster), call)?;
    made.current_context = Some(call(cluster));
    let path = directory.join(cluster.as_str());
    let failed =
        |error: &dyn std::fmt::Display| Trouble::failed(format!("cannot write {}: {error}", path.display()), "");
    let text = serde_json::to_vec(&made).map_err(|error| failed(&error))?;
    std::fs::write(&path, text).map_err(|error| failed(&error))?;
    Ok(path)
}

/// All that comes, up to [`LONGEST`] bytes; the rest is read and told of.
async fn kept(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let Some(mut pipe) = pipe else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    (&mut pipe).take(LONGEST as u64).read_to_end(&mut kept).await?;
    if kept.len() == LONGEST && tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await? > 0 {
        kept.extend_from_slice(b"\n[more was printed than is kept]\n");
    }
    Ok(kept)
}
