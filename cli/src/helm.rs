//! Runs helm as a child process. Only helm renders and installs charts.

use std::io;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::trouble::{Exit, Result, Trouble};
use crate::{span, text_table};

/// Time for helm to render, and the time that it gets to end after its own time limit.
pub const LIMIT: Duration = Duration::from_mins(2);
/// Time for helm to end after an interrupt. It records how far it came; without that record, the
/// release stays locked.
pub const GRACE: Duration = Duration::from_secs(30);

/// Where helm is.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Options {
    /// The program helm
    #[arg(long, value_name = "PROGRAM", env = "HELM_BIN", default_value = "helm")]
    pub helm: PathBuf,
}

// === impl Options ===

impl Options {
    /// Runs helm with `arguments` and with `input` as its standard input. Returns its output. After
    /// `limit`, or when `interrupted` is cancelled, interrupts helm and waits for its end. Does not
    /// start it at all after an interrupt: nothing would wait for its orderly end.
    pub async fn output(
        &self,
        arguments: &[String],
        input: &str,
        limit: Duration,
        interrupted: &CancellationToken,
    ) -> Result<String> {
        if interrupted.is_cancelled() {
            return Err(Trouble::interrupted());
        }
        let mut command = Command::new(&self.helm);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| self.absent(&error))?;
        let id = child.id();
        let mut run = Box::pin(async move {
            if let Some(mut pipe) = child.stdin.take() {
                // helm may end before it has read everything. Its output tells why.
                drop(pipe.write_all(input.as_bytes()).await);
            }
            child.wait_with_output().await
        });
        let why = tokio::select! {
            ended = &mut run => return told(ended),
            () = interrupted.cancelled() => "it was interrupted".to_owned(),
            () = sleep(limit) => format!("it did not end within {}", span::took(limit)),
        };
        interrupt(id);
        let why = match timeout(GRACE, run).await {
            Ok(Ok(output)) => format!("{why}: {}", words(&output)),
            Ok(Err(_)) => why,
            Err(_) => format!("{why}, nor within {} after an interrupt, and was killed", span::took(GRACE)),
        };
        Err(failed(&why))
    }

    fn absent(&self, error: &io::Error) -> Trouble {
        Trouble::usage(
            format!("cannot run {}: {error}", self.helm.display()),
            "install helm (https://helm.sh) or name it with --helm; without helm, render manifests with --print on a \
             machine that has it, and `kubectl apply` them",
        )
    }
}

fn told(ended: io::Result<Output>) -> Result<String> {
    let output = ended.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(&words(&output)))
    }
}

/// helm's own message about a failure.
fn words(output: &Output) -> String {
    text_table::tame(String::from_utf8_lossy(&output.stderr).trim())
}

/// Sends the signal that the terminal sends at Ctrl-C.
fn interrupt(id: Option<u32>) {
    #[cfg(unix)]
    if let Some(id) = id.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
        // It may have ended already, which is just as well.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
    }
}

fn failed(what: &str) -> Trouble {
    let trouble = Trouble::failed(format!("helm: {what}"), remedy(what));
    if trouble.is_forbidden() { Trouble { exit: Exit::Hub, ..trouble } } else { trouble }
}

/// What to do about a failure that helm reports.
fn remedy(what: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| what.contains(word));
    if says(&["another operation"]) {
        "a helm that was killed has left the release locked: see `helm history`, then `helm rollback` to a revision that \
         was deployed, or `helm uninstall` if there is none, and run the same command again"
    } else if says(&["invalid ownership metadata"]) {
        "something else installed that object: of the Go cluster-gateway, only swap the image (docs/migration.md), or \
         remove it first; of anything else, choose another --namespace"
    } else if says(&["is forbidden"]) {
        "ask an administrator of the hub to run this command, or for the right that the message names: the chart makes \
         ClusterRoles, an APIService and a namespace"
    } else if says(&["don't meet the specifications of the schema"]) {
        "correct the values that the message names; a chart of another version than this program may not know them: omit \
         --chart, or --agent-chart of `join --tunnel`, for this program's own"
    } else if says(&["reset-then-reuse-values"]) {
        "use helm 3.14 or later"
    } else if says(&["cluster unreachable"]) {
        "check that `kubectl version` works with this context, or choose another --context"
    } else if says(&["it was interrupted", "did not end", "timed out", "deadline exceeded"]) {
        "see the pods and events of its namespace; run the same command again to continue, with more time: --wait"
    } else {
        "check that --chart (of `join --tunnel`: --agent-chart) is the chart's directory or address, and check the \
         values"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn helm_is_not_started_after_an_interrupt() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let (touch, words) = (Options { helm: "touch".into() }, [mark.display().to_string()]);
        let interrupted = CancellationToken::new();
        interrupted.cancel();
        let told = touch.output(&words, "", LIMIT, &interrupted).await.unwrap_err();
        assert!(told.what.contains("interrupted") && !mark.exists(), "{told}");
        touch.output(&words, "", LIMIT, &CancellationToken::new()).await.unwrap();
        assert!(mark.exists());
    }

    #[test]
    fn what_helm_says_has_a_remedy() {
        let locked = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress";
        assert!(remedy(locked).contains("helm rollback"));
        let others = "Error: Unable to continue with install: ServiceAccount \"cluster-gateway\" in namespace \
                      \"vela-system\" exists and cannot be imported into the current release: invalid ownership metadata";
        assert!(remedy(others).contains("Go cluster-gateway"));
        assert!(remedy("Error: unknown flag: --reset-then-reuse-values").contains("3.14"));
        let unknown = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n\
                       tunnel-agent:\n- (root): Additional property serverCA is not allowed";
        assert!(remedy(unknown).contains("another version") && remedy(unknown).contains("--agent-chart"));
        assert!(remedy("Error: UPGRADE FAILED: context deadline exceeded").contains("--wait"));
        assert!(remedy("Error: Kubernetes cluster unreachable: dial tcp").contains("--context"));
        let forbidden = failed("Error: query: failed to query with labels: secrets is forbidden: User \"u\" cannot");
        assert!(forbidden.exit == Exit::Hub && forbidden.remedy.contains("administrator of the hub"), "{forbidden}");
        assert!(remedy("Error: path \"/no/chart\" not found").contains("--chart"));
    }
}
