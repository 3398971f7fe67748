//! Clients of the hub: for reading Secrets, for TokenReviews, for SubjectAccessReviews.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A hub that accepts no connection within this is tried again, with back-off.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for `kubeconfig`, or for the cluster this process runs in. Must be called on the runtime that will drive it.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let mut config = match kubeconfig {
        Some(path) => from_file(path).await?,
        None => Config::incluster().context(
            "no kubeconfig given and not running in a pod: name the hub with --kubeconfig, or run without one by --standalone",
        )?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Retries are decided where the call is made: a hidden one would multiply with ours.
    config.default_retry = false;
    Client::try_from(config).context("cannot set up the client for the hub")
}

async fn from_file(path: &Path) -> anyhow::Result<Config> {
    let name = || format!("kubeconfig {}", path.display());
    let kubeconfig = Kubeconfig::read_from(path).with_context(name)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.with_context(name)
}
