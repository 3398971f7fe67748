//! Runs helm as a child process. Only helm renders and installs charts.

mod failure;

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::failure::{failed, printed, words};
use crate::span;
use crate::trouble::{Result, Trouble};

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

/// Options for the same values, which are texts and lists of texts in objects. They override all
/// `--set`, wherever these are. `path` is the key of `values`, empty at the top.
pub fn set_strings(path: &str, values: &Value) -> Vec<String> {
    match values {
        Value::Object(fields) => {
            let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            fields.iter().flat_map(|(key, value)| set_strings(&inner(key), value)).collect()
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(escaped).collect();
            vec![format!("--set-string={path}={{{}}}", items.join(","))]
        }
        text => vec![format!("--set-string={path}={}", escaped(text))],
    }
}

/// A text in which helm finds neither a list nor another key.
fn escaped(text: &Value) -> String {
    let mut written = String::new();
    for character in text.as_str().unwrap_or_default().chars() {
        if matches!(character, '\\' | ',' | '{' | '}') {
            written.push('\\');
        }
        written.push(character);
    }
    written
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
                // helm may end before it has read everything. Its output says why.
                drop(pipe.write_all(input.as_bytes()).await);
            }
            child.wait_with_output().await
        });
        let why = tokio::select! {
            ended = &mut run => return printed(ended),
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

/// Sends the signal that the terminal sends at Ctrl-C.
fn interrupt(id: Option<u32>) {
    #[cfg(unix)]
    if let Some(id) = id.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
        // It may have ended already, which is just as well.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
    }
}

#[cfg(test)]
mod tests {
    use super::failure::remedy;
    use super::*;
    use crate::trouble::Exit;

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
    fn values_are_options_that_helm_reads_as_the_same_texts() {
        let values = serde_json::json!({
            "cluster": "7", "servers": ["hub:1", "[::1]:2,x"], "image": {"tag": "", "a": {"b": r"{c\}"}},
        });
        let expected = [
            "--set-string=cluster=7",
            r"--set-string=servers={hub:1,[::1]:2\,x}",
            "--set-string=image.tag=",
            r"--set-string=image.a.b=\{c\\\}",
        ];
        let mut options = set_strings("", &values);
        options.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(options, expected);
    }

    #[test]
    fn what_helm_says_has_a_remedy() {
        let locked = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress";
        assert!(remedy(locked).contains("helm rollback"));
        let others = "Error: Unable to continue with install: ServiceAccount \"cluster-gateway\" in namespace \
                      \"vela-system\" exists and cannot be imported into the current release: invalid \
                      ownership metadata";
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
