//! Clients of the hub: for reading Secrets, for TokenReviews, for SubjectAccessReviews, and for clients' reads of our resources.

mod calls;
mod failure;
mod lines;
mod watches;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

pub use self::calls::{Collection, Hub, Watching};
pub use self::failure::{Cause, HubFailure, Verb};
pub use self::lines::Line;
use crate::yaml;

/// How we call ourselves.
pub const PROGRAM: &str = concat!("cluster-gateway/", env!("CARGO_PKG_VERSION"));

/// A hub that accepts no connection within this is tried again, with back-off.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A hub that says nothing for longer is gone: above the 290 s after which it ends a watch by itself.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// A client for `kubeconfig`, or for the cluster this process runs in, that calls itself `user_agent` (empty: [`PROGRAM`]). Must be
/// called on the runtime that will drive it.
pub async fn client(kubeconfig: Option<&Path>, user_agent: &str) -> anyhow::Result<Client> {
    let mut config = config(kubeconfig, user_agent).await?;
    config.read_timeout = Some(READ_TIMEOUT);
    Client::try_from(config).context("cannot set up the client for the hub")
}

/// As [`client`], for watches whose length their watchers decide: they may be silent for as long as nothing happens.
pub async fn watch_client(kubeconfig: Option<&Path>, user_agent: &str) -> anyhow::Result<Client> {
    Client::try_from(config(kubeconfig, user_agent).await?).context("cannot set up the client for the hub's watches")
}

async fn config(kubeconfig: Option<&Path>, user_agent: &str) -> anyhow::Result<Config> {
    let mut config = match kubeconfig {
        Some(path) => from_file(path).await?,
        None => Config::incluster().context(
            "no kubeconfig given and not running in a pod: name the hub with --kubeconfig, or run without one by --standalone",
        )?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Retries are decided where the call is made: a hidden one would multiply with ours.
    config.default_retry = false;
    let user_agent = if user_agent.is_empty() { PROGRAM } else { user_agent };
    let user_agent = HeaderValue::from_str(user_agent).context("--user-agent cannot be sent in a header")?;
    config.headers.push((USER_AGENT, user_agent));
    Ok(config)
}

async fn from_file(path: &Path) -> anyhow::Result<Config> {
    let told = |error: KubeconfigError| anyhow!("kubeconfig {}: {}", path.display(), yaml::kubeconfig(&error));
    let kubeconfig = Kubeconfig::read_from(path).map_err(told)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(told)
}
