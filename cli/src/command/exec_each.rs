//! `exec-each`: runs a command of this machine once for each of many clusters.

mod group;
mod kubeconfigs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::{Event, Failure, Limits};
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use self::group::Group;
use self::kubeconfigs::Kubeconfigs;
use super::get::failed;
use crate::bytes_left::BytesLeft;
use crate::progress::Line;
use crate::selection::Selection;
use crate::session::{AT_ONCE, Session};
use crate::trouble::Result;
use crate::{output, span};

/// Most bytes that are kept of each output stream of one cluster's command.
const LONGEST: usize = 4 << 20;
/// Most bytes that are kept of all clusters' output. Each cluster's output is kept until its turn
/// to be shown.
const MOST: usize = 512 << 20;

/// Run a command once per cluster.
///
/// Runs a command with a KUBECONFIG for the cluster, through the hub as you, and with the cluster's
/// name in CLUSTER; 16 at a time. Standard input is empty. Output is grouped by cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters exec-each --all -- kubectl get nodes
  kubectl clusters exec-each -l env=prod -- kubectl -n web rollout status deployment/shop
  kubectl clusters exec-each berlin,munich --prefix -- sh -c 'kubectl version -o json | jq .serverVersion'")]
pub struct ExecEach {
    /// Clusters, as NAME,NAME
    clusters: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Put the cluster's name before each line, instead of a heading
    #[arg(long)]
    prefix: bool,
    /// Timeout per cluster
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = span::parse)]
    timeout: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The outcome of a command.
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
        let (kubeconfigs, room) = (Kubeconfigs::new(session)?, BytesLeft::new(MOST));
        let limits = Limits { at_once: AT_ONCE, within: self.timeout };
        // Dropped before the files, so that no command runs without them.
        let mut all = fleet::each(clusters, limits, |cluster| self.one(session, &kubeconfigs, &room, cluster));
        let mut line = Line::new("done");
        let (mut waiting, mut next, mut failures) = (BTreeMap::new(), 0, Vec::new());
        while let Some(event) = all.next().await {
            line.tell(all.progress(), &event);
            if let Event::Finished(outcome) = event {
                waiting.insert(outcome.place, outcome);
            }
            // Shows outcomes in the order of the clusters, each as soon as it is its turn.
            while let Some(outcome) = waiting.remove(&next) {
                next += 1;
                match outcome.result {
                    Ok(done) => {
                        line.clear();
                        self.show(&outcome.cluster, &done)?;
                        room.give_back(done.size());
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
        kubeconfigs: &Kubeconfigs,
        room: &BytesLeft,
        cluster: ClusterName,
    ) -> std::result::Result<Done, Failure> {
        let told = |error: &dyn std::fmt::Display| Failure::own(error.to_string());
        let files = kubeconfigs.of(session, &cluster).map_err(|trouble| Failure::own(trouble.what))?;
        let (program, arguments) = self.command.split_first().ok_or_else(|| told(&"no command"))?;
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", files).env("CLUSTER", cluster.as_str());
        Group::lead(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| told(&format!("cannot run {}: {error}", program.display())))?;
        let _group = Group::of(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr, status) = tokio::join!(kept(stdout), kept(stderr), child.wait());
        let code = status.map_err(|error| told(&error))?.code();
        let (stdout, stderr) = (stdout.map_err(|error| told(&error))?, stderr.map_err(|error| told(&error))?);
        let done = Done { stdout, stderr, code };
        room.take(done.size())?;
        Ok(done)
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
    fn size(&self) -> usize {
        self.stdout.len() + self.stderr.len()
    }

    fn failure(&self) -> Option<Failure> {
        match self.code {
            Some(0) => None,
            Some(code) => Some(Failure::own(format!("the command ended with exit code {code}"))),
            None => Some(Failure::own("a signal ended the command")),
        }
    }
}

/// Reads to the end. Keeps up to [`LONGEST`] bytes, and drops the rest; a mark says so.
async fn kept(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let Some(mut pipe) = pipe else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    (&mut pipe).take(LONGEST as u64).read_to_end(&mut kept).await?;
    if kept.len() == LONGEST && tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await? > 0 {
        kept.extend_from_slice(b"\n[output truncated]\n");
    }
    Ok(kept)
}
