//! Makes clients of the hub: for Secrets, TokenReviews, SubjectAccessReviews, and for clients'
//! reads of our resources.

use std::path::Path;

use ::hub::client::{self as hub_client, HubClientError};
use anyhow::anyhow;
use kube::Client;

pub use ::hub::client::domain;
pub use ::hub::{
    Cause, ClientCertificate, Collection, Hub, HubFailure, Line, Meter, WatchPermit, Watches, Watching, paged, watcher,
};

/// Our default User-Agent.
pub const PROGRAM: &str = concat!("cluster-gateway/", env!("CARGO_PKG_VERSION"));

/// A client for `kubeconfig`, or for the cluster in which this process runs, with the User-Agent
/// `user_agent` (empty: [`PROGRAM`]). Must be called on the runtime that will drive it.
pub async fn client(kubeconfig: Option<&Path>, user_agent: &str) -> anyhow::Result<Client> {
    hub_client::client(kubeconfig, named(user_agent)).await.map_err(explain)
}

/// The same as [`client`], for watches whose length their watchers decide: these may be silent for
/// as long as nothing happens.
pub async fn watch_client(kubeconfig: Option<&Path>, user_agent: &str) -> anyhow::Result<Client> {
    hub_client::watch_client(kubeconfig, named(user_agent)).await.map_err(explain)
}

/// Where [`client`] finds the hub.
pub async fn url(kubeconfig: Option<&Path>) -> anyhow::Result<String> {
    hub_client::url(kubeconfig).await.map_err(explain)
}

fn named(user_agent: &str) -> &str {
    if user_agent.is_empty() { PROGRAM } else { user_agent }
}

/// Explains the error with our flags.
fn explain(error: HubClientError) -> anyhow::Error {
    match error {
        HubClientError::InCluster(source) => anyhow::Error::from(source).context(
            "no kubeconfig given and not running in a pod: name the hub with --kubeconfig, or run without a hub with \
             --standalone",
        ),
        HubClientError::UserAgent => anyhow!("--user-agent cannot be sent in a header"),
        HubClientError::Kubeconfig { .. }
        | HubClientError::Client(_)
        | HubClientError::Url { .. }
        | HubClientError::ServerName
        | HubClientError::Ca { .. } => error.into(),
    }
}
