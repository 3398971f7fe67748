//! `install`: installs the gateway on the hub, with helm.

mod image;

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::Api;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::expiry::now;
use crate::findings::Mark;
use crate::namespace::API_SERVICE;
use crate::session::{LOOK_AGAIN, Options, Session};
use crate::trouble::{Result, Trouble};
use crate::{charts, findings, helm, output, span};

/// Install the gateway on the hub, with helm.
///
/// Runs helm with the gateway's chart on the hub of your context. Without helm, run it with
/// `--print` on a machine that has helm, and `kubectl apply` the manifests. Run it again to
/// upgrade: values of earlier runs stay unless you set them again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters install --set image.repository=registry.example/cluster-gateway
  kubectl clusters install --set image.repository=registry.example/cluster-gateway --print > gateway.yaml
  kubectl clusters install --set replicas=3                    # again: the image stays
  kubectl clusters install --chart ./charts/cluster-gateway    # another chart than this program's")]
pub struct Install {
    /// The chart cluster-gateway: a directory, or an address for helm [default: the chart of this
    /// program's version]
    #[arg(long, value_name = "CHART")]
    chart: Option<String>,
    /// Name of the release
    #[arg(long, value_name = "NAME", default_value = "cluster-gateway")]
    release: String,
    /// Namespace of the release
    #[arg(short, long, value_name = "NAMESPACE", default_value = "vela-system")]
    namespace: String,
    /// A value of the chart; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A file of values; may be given more than once
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<String>,
    /// Forget the values of earlier runs
    #[arg(long, conflicts_with = "print")]
    reset_values: bool,
    /// Timeout for the gateway's pods to be ready, and again for the hub to reach them
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = span::parse)]
    wait: Duration,
    /// Print the manifests instead of installing them
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    helm: helm::Options,
}

// === impl Install ===

impl Install {
    pub async fn run(&self, options: &Options) -> Result<ExitCode> {
        let chart = charts::GATEWAY.or(self.chart.as_deref())?;
        if self.print {
            return self.print(options, &chart.place).await;
        }
        // An unusable context, an unreachable hub, and a rejected credential fail here: before
        // anything is created, and with our own messages.
        let session = Session::open(options.clone()).await?;
        session.within(crate::look::version(session.hub())).await?;
        self.refuse_imageless(options, &chart.place).await?;
        output::say(&self.announcement(&session.context));
        let words = self.words(options, &chart.place);
        let text = self.helm.output(&words, "", self.wait + helm::LIMIT, &options.interrupted).await?;
        output::print(without_notes(&text))?;
        cautions(&text).into_iter().flat_map(str::lines).for_each(output::say);
        output::say(&format!("The chart's notes: `helm get notes {} -n {}`.", self.release, self.namespace));
        available(&session, self.wait).await?;
        output::say("The hub reaches the gateway. Next: `kubectl clusters check`, then `kubectl clusters join`.");
        Ok(ExitCode::SUCCESS)
    }

    /// Says what is about to happen, and where: helm prints nothing before it is done.
    fn announcement(&self, context: &str) -> String {
        let chart = self.chart.clone().unwrap_or_else(|| charts::GATEWAY.name_and_version());
        let (release, namespace) = (&self.release, &self.namespace);
        let wait = span::rough(i64::try_from(self.wait.as_secs()).unwrap_or(i64::MAX));
        format!(
            "Installing the chart {chart} as {release} into the namespace {namespace} of the context {context}; \
             waiting up to {wait} for its pods"
        )
    }

    async fn print(&self, options: &Options, chart: &str) -> Result<ExitCode> {
        if let Some(key) = self.unset_image(options, chart).await? {
            output::say(&format!("warning: these manifests name an image that is not published: --set {key}=…"));
        }
        let mut words = self.words(options, chart);
        words.extend(version(options).await);
        let text = self.helm.output(&words, "", helm::LIMIT, &options.interrupted).await?;
        // When helm installs, it creates the namespace itself.
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        output::print(&format!("---\n{}{text}", output::to_yaml(&namespace)?))?;
        if text.contains("tls.key") {
            output::say(
                "warning: these manifests hold private keys, new in each rendering: keep them secret, and apply this \
                 rendering. With your own certificates (--set tls.existingSecret=…) there are none.",
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn words(&self, options: &Options, chart: &str) -> Vec<String> {
        let command: &[&str] = if self.print { &["template"] } else { &["upgrade", "--install"] };
        let mut words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        words.extend([self.release.clone(), chart.to_owned(), format!("--namespace={}", self.namespace)]);
        if !self.print {
            let wait = format!("--timeout={}s", self.wait.as_secs().max(1));
            let values = if self.reset_values { "--reset-values" } else { "--reset-then-reuse-values" };
            words.extend(["--create-namespace", "--wait", &wait, values].map(str::to_owned));
        }
        words.extend(self.set.iter().map(|value| format!("--set={value}")));
        words.extend(self.values.iter().map(|file| format!("--values={file}")));
        words.extend(hub(options));
        words
    }
}

/// The flags that tell helm where the hub is.
fn hub(options: &Options) -> Vec<String> {
    let kubeconfig = options.kubeconfig.iter().map(|file| format!("--kubeconfig={}", file.display()));
    kubeconfig.chain(options.context.iter().map(|context| format!("--kube-context={context}"))).collect()
}

/// helm's output without the chart's notes, which are only for users of helm itself, and would bury
/// what was done.
fn without_notes(text: &str) -> &str {
    text.find("\nNOTES:").map_or(text, |end| &text[..=end])
}

/// The paragraphs of the notes that warn of something, and the indented commands after them.
fn cautions(text: &str) -> Vec<&str> {
    let notes = text.split_once("\nNOTES:").map_or("", |(_, notes)| notes);
    let parts = notes.split("\n\n").map(|part| part.trim_start_matches('\n').trim_end());
    let mut warns = false;
    let warning = |part: &&str| {
        let is_continued = warns && part.starts_with(' ');
        warns = is_continued || part.starts_with("WARNING: ") || part.starts_with("NOTE: ");
        warns
    };
    parts.filter(warning).collect()
}

/// Waits, for at most `span`, until the hub reaches the gateway: its pods are ready a moment
/// before.
async fn available(session: &Session, span: Duration) -> Result<()> {
    let services = Api::<APIService>::all(session.hub().clone());
    let end = Instant::now() + span;
    loop {
        let service = session.within(services.get(API_SERVICE)).await?;
        let Some(found) = findings::api_service(&service, now()).into_iter().next() else { return Ok(()) };
        if found.mark == Mark::Good {
            return Ok(());
        }
        if Instant::now() + LOOK_AGAIN > end {
            return Err(Trouble::failed(found.what, found.remedy).when("installed, but not working yet"));
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// A flag with the hub's version for helm's rendering, which contacts no hub. `None` if the hub
/// does not answer.
async fn version(options: &Options) -> Option<String> {
    let session = Session::open(options.clone()).await.ok()?;
    let (version, _) = session.within(crate::look::version(session.hub())).await.ok()?;
    Some(format!("--kube-version={version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helm_did_is_told_and_the_notes_are_not() {
        let told = "NAME: x\nSTATUS: deployed\n";
        assert_eq!([without_notes(told), without_notes(&format!("{told}NOTES:\nuse it\n"))], [told; 2]);
    }

    #[test]
    fn what_the_notes_warn_of_is_told() {
        let told = "STATUS: deployed\nNOTES:\nuse it\n\n    a command\n\nWARNING: one place\nfor all. Move them:\n\n\
                    \x20   one\n    two\n\nGo on:\n\n    a third\n\nNOTE: two\n";
        let expected = ["WARNING: one place\nfor all. Move them:", "    one\n    two", "NOTE: two"];
        assert_eq!(cautions(told), expected);
        assert!(cautions("WARNING: none of the notes\n").is_empty());
    }
}
