//! Clients of the hub: for reading Secrets, for TokenReviews, for SubjectAccessReviews.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::yaml;

/// A hub that accepts no connection within this is tried again, with back-off.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A hub that says nothing for longer is gone: above the 290 s after which it ends a watch by itself.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// A client for `kubeconfig`, or for the cluster this process runs in. Must be called on the runtime that will drive it.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let mut config = match kubeconfig {
        Some(path) => from_file(path).await?,
        None => Config::incluster().context(
            "no kubeconfig given and not running in a pod: name the hub with --kubeconfig, or run without one by --standalone",
        )?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    // Retries are decided where the call is made: a hidden one would multiply with ours.
    config.default_retry = false;
    Client::try_from(config).context("cannot set up the client for the hub")
}

async fn from_file(path: &Path) -> anyhow::Result<Config> {
    let told = |error: KubeconfigError| anyhow!("kubeconfig {}: {}", path.display(), yaml::kubeconfig(&error));
    let kubeconfig = Kubeconfig::read_from(path).map_err(told)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(told)
}
