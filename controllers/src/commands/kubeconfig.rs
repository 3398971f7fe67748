//! `kubeconfig`: contexts for members through the gateway, in the spelling of one dialect.
//!
//! They contain no credential: they run `credential` for one, or name the user of a kubeconfig that
//! stays in its place.

mod document;
mod server;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use api::cluster_name::ClusterName;
use api::route::Dialect;
use clap::ValueEnum;
use fleet::Fleet;
use hub::client;
use kube::config::Kubeconfig;
use net::runtime::block_on;

use self::document::{User, document};
use self::server::Server;
use crate::calls::{PROGRAM, runtime};

/// Print a kubeconfig with a context for each cluster
///
/// It holds no credential. Its user is a program that reads a token from a file (--token-file), or
/// the user of another kubeconfig (--user-from): use the two together.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cluster-gateway-controllers kubeconfig berlin paris --token-file=/run/token > fleet.yaml
  cluster-gateway-controllers kubeconfig --all --user-from=$HOME/.kube/config > fleet.yaml
  KUBECONFIG=$HOME/.kube/config:fleet.yaml kubectl --context berlin get pods
  cluster-gateway-controllers kubeconfig -l region=north --dialect=kcp --gateway-url=https://gateway:9443 \\
    --gateway-ca-file=ca.crt --token-file=/run/token")]
pub struct Contexts {
    /// Names of clusters
    #[arg(value_name = "CLUSTER")]
    clusters: Vec<String>,
    /// All clusters that the hub lists for you
    #[arg(long, conflicts_with_all = ["clusters", "selector"])]
    all: bool,
    /// Labels of the clusters
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "clusters")]
    selector: Option<String>,
    /// Spelling of members' paths. kcp and ocm-user-server require --gateway-url
    #[arg(long, value_enum, default_value_t = Spelling::Native, value_name = "DIALECT")]
    dialect: Spelling,
    /// Kubeconfig of the hub (default in a pod: the pod's cluster; else KUBECONFIG, ~/.kube/config)
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// URL of the gateway, or of its user server (default: the hub's aggregated API)
    #[arg(long, value_name = "URL")]
    gateway_url: Option<String>,
    /// PEM file of the CA that --gateway-url's certificate is verified with (default: the hub's)
    #[arg(long, value_name = "FILE", requires = "gateway_url")]
    gateway_ca_file: Option<PathBuf>,
    /// File with a token of the hub, which the contexts' user reads when it is used
    #[arg(long, value_name = "FILE", conflicts_with = "user_from")]
    token_file: Option<PathBuf>,
    /// Kubeconfig whose current context's user the contexts name
    #[arg(long, value_name = "KUBECONFIG")]
    user_from: Option<PathBuf>,
}

/// A dialect, as the flag spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Spelling {
    Native,
    Karmada,
    Kcp,
    OcmUserServer,
}

// === impl Spelling ===

impl Spelling {
    fn as_str(self) -> &'static str {
        self.dialect().word().unwrap_or("native")
    }

    fn dialect(self) -> Dialect {
        match self {
            Self::Native => Dialect::Native,
            Self::Karmada => Dialect::Karmada,
            Self::Kcp => Dialect::Kcp,
            Self::OcmUserServer => Dialect::UserServer,
        }
    }

    /// Whether the hub's aggregator forwards it.
    fn goes_through_hub(self) -> bool {
        matches!(self, Self::Native | Self::Karmada)
    }
}

// === impl Contexts ===

impl Contexts {
    pub fn text(&self) -> anyhow::Result<String> {
        let user = self.user()?;
        let runtime = runtime("kubeconfig")?;
        let (kubeconfig, selector, named) = (self.hub(), self.selector()?, self.named()?);
        let (spelling, url, ca_file) = (self.dialect, self.gateway_url.clone(), self.gateway_ca_file.clone());
        let found = block_on(runtime.handle(), async move {
            let server = Server::find(spelling, url.as_deref(), ca_file.as_deref(), kubeconfig.as_deref()).await?;
            let Some(selector) = selector else { return anyhow::Ok((server, named)) };
            let fleet = Fleet::connect(kubeconfig.as_deref(), PROGRAM).await.context("the hub")?;
            let clusters = fleet.clusters(&selector).await?;
            Ok((server, clusters.into_iter().map(|cluster| cluster.name).collect()))
        })?;
        let (server, clusters) = found?;
        let clusters = self.spelled(clusters)?;
        let text = serde_saphyr::to_string_with_options(
            &document(&server, &user, &clusters),
            serde_saphyr::ser_options! { prefer_block_scalars: false },
        );
        text.context("cannot write YAML")
    }

    /// The clusters with their paths. A cluster that was named must have one.
    fn spelled(&self, clusters: Vec<ClusterName>) -> anyhow::Result<Vec<(ClusterName, String)>> {
        let mut spelled = Vec::new();
        for cluster in clusters {
            let dialect = self.dialect.as_str();
            match self.dialect.dialect().path(&cluster) {
                Some(path) => spelled.push((cluster, path)),
                None if self.clusters.is_empty() => {
                    print(&format!(
                        "cluster {cluster} is left out: {dialect} has no name with a part of over 63 characters"
                    ));
                }
                None => bail!(
                    "cluster {cluster} has no path in the dialect {dialect}, whose names have parts of at most 63 \
                     characters: choose another --dialect"
                ),
            }
        }
        Ok(spelled)
    }

    /// None if clusters were named.
    fn selector(&self) -> anyhow::Result<Option<String>> {
        match (&self.selector, self.all) {
            (Some(selector), _) => Ok(Some(selector.clone())),
            (None, true) => Ok(Some(String::new())),
            (None, false) if self.clusters.is_empty() => {
                bail!("no clusters: name them, or choose them with --all or -l")
            }
            (None, false) => Ok(None),
        }
    }

    fn named(&self) -> anyhow::Result<Vec<ClusterName>> {
        let parsed = |name: &String| ClusterName::parse(name).with_context(|| format!("cluster {name:?}"));
        self.clusters.iter().map(parsed).collect()
    }

    /// The file that kubectl would read first; none for the cluster of this pod.
    fn hub(&self) -> Option<PathBuf> {
        if self.kubeconfig.is_some() || client::is_in_pod() {
            return self.kubeconfig.clone();
        }
        client::first_kubeconfig()
    }

    fn user(&self) -> anyhow::Result<User> {
        match (&self.token_file, &self.user_from) {
            (Some(file), _) => Ok(User::Token(std::path::absolute(file)?)),
            (None, Some(file)) => {
                let read = Kubeconfig::read_from(file).map_err(|error| anyhow::anyhow!(client::mistake(&error)));
                let known = read.with_context(|| format!("--user-from={}", file.display()))?;
                let user = document::current_user(&known);
                Ok(User::Named(user.with_context(|| format!("--user-from={}", file.display()))?))
            }
            (None, None) => bail!(
                "the contexts have no user: give --token-file=FILE, a file with a token of the hub, or \
                 --user-from=KUBECONFIG, to name the user of your own"
            ),
        }
    }
}

/// Prints a line to standard error, apart from the result.
#[allow(clippy::print_stderr, reason = "standard output is the kubeconfig")]
fn print(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests;
