//! `install`: the gateway on the hub, by helm.

use std::process::ExitCode;
use std::time::Duration;

use crate::session::{Options, Session};
use crate::trouble::Result;
use crate::{charts, helm, output, span};

/// Install the gateway on the hub, by helm.
///
/// Runs helm with the gateway's chart for the hub of your context. Without helm, `--print` on a
/// machine that has it makes manifests for `kubectl apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters install --set image.repository=registry.example/cluster-gateway
  kubectl clusters install --print > gateway.yaml
  kubectl clusters install --chart ./charts/cluster-gateway    # another chart than this program's")]
pub struct Install {
    /// The chart cluster-gateway: a directory, or an address that helm knows [default: the one of
    /// this program's version]
    #[arg(long, value_name = "CHART")]
    chart: Option<String>,
    /// Name of the release
    #[arg(long, value_name = "NAME", default_value = "cluster-gateway")]
    release: String,
    #[arg(short, long, value_name = "NAMESPACE", default_value = "vela-system")]
    namespace: String,
    /// A value of the chart; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A file of values; may be given more than once
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<String>,
    /// For the gateway's pods to be ready
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = span::parse)]
    wait: Duration,
    /// Print the manifests in place of installing them
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    helm: helm::Options,
}

// === impl Install ===

impl Install {
    pub async fn run(&self, options: &Options) -> Result<ExitCode> {
        let chart = charts::GATEWAY.or(self.chart.as_deref())?;
        let mut words = self.words(options, &chart.place);
        if self.print {
            words.extend(version(options).await);
        }
        let text = self.helm.output(&words, "").await?;
        output::print(&text)?;
        if !self.print {
            output::say("Next: `kubectl clusters check`, then `kubectl clusters join`.");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn words(&self, options: &Options, chart: &str) -> Vec<String> {
        let command: &[&str] = if self.print { &["template"] } else { &["upgrade", "--install"] };
        let mut words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        words.extend([self.release.clone(), chart.to_owned(), format!("--namespace={}", self.namespace)]);
        if !self.print {
            let wait = format!("--timeout={}s", self.wait.as_secs().max(1));
            words.extend(["--create-namespace".to_owned(), "--wait".to_owned(), wait]);
        }
        words.extend(self.set.iter().map(|value| format!("--set={value}")));
        words.extend(self.values.iter().map(|file| format!("--values={file}")));
        words.extend(options.kubeconfig.iter().map(|file| format!("--kubeconfig={}", file.display())));
        words.extend(options.context.iter().map(|context| format!("--kube-context={context}")));
        words
    }
}

/// What helm is told of the hub while it renders, which asks nobody: its version, if it answers.
async fn version(options: &Options) -> Option<String> {
    let session = Session::open(options.clone()).await.ok()?;
    let (version, _) = session.within(crate::look::version(session.hub())).await.ok()?;
    Some(format!("--kube-version={version}"))
}
