//! helm as a child process: charts are rendered and installed by helm alone.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::text_table;
use crate::trouble::{Result, Trouble};

/// For helm to render, or to install.
const LIMIT: Duration = Duration::from_mins(10);

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
    /// What helm prints for `arguments`, with `input` as its standard input.
    pub async fn output(&self, arguments: &[String], input: &str) -> Result<String> {
        let mut command = Command::new(&self.helm);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| self.absent(&error))?;
        let mut pipe = child.stdin.take();
        let run = async {
            if let Some(pipe) = &mut pipe {
                // helm may end before it has read everything; its words tell why.
                drop(pipe.write_all(input.as_bytes()).await);
            }
            drop(pipe);
            child.wait_with_output().await
        };
        let output = timeout(LIMIT, run).await.map_err(|_| failed("it did not end"))?;
        let output = output.map_err(|error| failed(&error.to_string()))?;
        if !output.status.success() {
            return Err(failed(text_table::tame(String::from_utf8_lossy(&output.stderr).trim()).as_str()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn absent(&self, error: &io::Error) -> Trouble {
        Trouble::usage(
            format!("cannot run {}: {error}", self.helm.display()),
            "install helm (https://helm.sh) or name it with --helm; without it, make manifests on a machine that has it, \
             with --print, and `kubectl apply` them",
        )
    }
}

fn failed(what: &str) -> Trouble {
    Trouble::failed(
        format!("helm: {what}"),
        "see that --chart (of `join --tunnel`: --agent-chart) is the chart's directory or its address, and the values",
    )
}
