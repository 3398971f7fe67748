//! `remove-clusters`: removes what sources have registered, before everything is uninstalled.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use hub::client;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use net::runtime::block_on;
use register::claims::SOURCE_LABEL;

use crate::calls::{self, CONFLICT, NOT_FOUND, PROGRAM, runtime};
use crate::secrets::OBJECT_ANNOTATION;
use crate::term::WITHIN;

/// Attempts for Secrets that change while they are deleted.
const TRIES: usize = 5;

/// Delete the cluster Secrets that sources wrote, and no other
///
/// The gateway ends these clusters' streams at once. Turn the sources off first: one that runs
/// registers its clusters again.
#[derive(Debug, clap::Args)]
pub struct RemoveClusters {
    /// Kubeconfig of the hub (default in a pod: the pod's cluster; else KUBECONFIG, ~/.kube/config)
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the cluster Secrets
    #[arg(long, value_name = "NAMESPACE", default_value = "vela-system")]
    secret_namespace: String,
}

// === impl RemoveClusters ===

impl RemoveClusters {
    /// Prints a line for each removed cluster.
    ///
    /// # Errors
    /// Fails if the hub cannot be reached or refuses; clusters removed until then stay removed.
    pub fn run(&self) -> anyhow::Result<()> {
        let runtime = runtime("remove-clusters")?;
        let (kubeconfig, namespace) = (self.kubeconfig.clone(), self.secret_namespace.clone());
        block_on(runtime.handle(), async move {
            let client = client::client(kubeconfig.as_deref(), PROGRAM).await.context("the hub")?;
            remove(&Api::namespaced(client, &namespace)).await
        })?
    }
}

async fn remove(secrets: &Api<Secret>) -> anyhow::Result<()> {
    for _ in 0..TRIES {
        if pass(secrets).await? == 0 {
            return Ok(());
        }
    }
    bail!("the clusters' Secrets keep changing: run this command again")
}

/// Returns how many changed meanwhile.
async fn pass(secrets: &Api<Secret>) -> anyhow::Result<usize> {
    let mut changed = 0;
    let listed = calls::list_metadata(secrets, ListParams::default().labels(SOURCE_LABEL)).await;
    for secret in listed.context("cannot list the clusters' Secrets")?.into_iter().filter(is_of_a_source) {
        let name = secret.name.unwrap_or_default();
        // If a person registers the name meanwhile, or takes the Secret over, the cluster stays.
        let only = calls::deleting(&secret.uid.unwrap_or_default(), secret.resource_version.as_deref());
        match calls::bounded(WITHIN, secrets.delete(&name, &only)).await {
            Ok(_) => super::print(&format!("cluster {name} removed\n"))?,
            Err(error) if error.is(NOT_FOUND) => {}
            Err(error) if error.is(CONFLICT) => changed += 1,
            Err(error) => return Err(error).with_context(|| format!("cluster {name} is still registered")),
        }
    }
    Ok(changed)
}

/// A person may have set the label alone.
fn is_of_a_source(secret: &ObjectMeta) -> bool {
    secret.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(OBJECT_ANNOTATION))
}
