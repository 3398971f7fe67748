//! `remove-clusters`: takes away what sources have registered, for who uninstalls everything.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use hub::client;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Preconditions};
use kube::{Api, ResourceExt as _};
use net::runtime::{BackgroundRuntime, block_on, builder};
use register::claims::SOURCE_LABEL;
use tokio::time::timeout;

use crate::secrets::OBJECT_ANNOTATION;

/// How we call ourselves to the hub.
const PROGRAM: &str = concat!("cluster-gateway-controllers/", env!("CARGO_PKG_VERSION"));
/// For name look-ups that cannot be interrupted.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// Secrets of one answer.
const PAGE: u32 = 500;
/// For one call.
const WITHIN: Duration = Duration::from_secs(30);

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
    /// A line for each cluster that was removed.
    ///
    /// # Errors
    /// The hub cannot be asked, or refuses; what was removed until then stays removed.
    pub fn text(&self) -> anyhow::Result<String> {
        let runtime = BackgroundRuntime::start(builder(1), "remove-clusters", LAST_MOMENT)?;
        let (kubeconfig, namespace) = (self.kubeconfig.clone(), self.secret_namespace.clone());
        block_on(runtime.handle(), async move {
            let client = client::client(kubeconfig.as_deref(), PROGRAM).await.context("the hub")?;
            remove(&Api::namespaced(client, &namespace)).await
        })?
    }
}

async fn remove(secrets: &Api<Secret>) -> anyhow::Result<String> {
    let (mut removed, mut next) = (Vec::new(), None::<String>);
    loop {
        let mut page = ListParams::default().labels(SOURCE_LABEL).limit(PAGE);
        page.continue_token = next;
        let listed = timeout(WITHIN, secrets.list_metadata(&page)).await.context("the hub does not answer")?;
        let listed = listed.context("cannot list the clusters' Secrets")?;
        for secret in listed.items.iter().filter(|secret| is_of_a_source(secret)) {
            let name = secret.name_any();
            // A person who registers the name meanwhile keeps the cluster.
            let seen = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
            let only = DeleteParams { preconditions: Some(seen), ..DeleteParams::default() };
            match timeout(WITHIN, secrets.delete(&name, &only)).await.context("the hub does not answer")? {
                Ok(_) => removed.push(format!("cluster {name} removed\n")),
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                Err(error) => bail!("cluster {name} is still registered: {error}"),
            }
        }
        next = listed.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(removed.concat());
        }
    }
}

/// The label alone may be a person's.
fn is_of_a_source(secret: &PartialObjectMeta<Secret>) -> bool {
    secret.annotations().contains_key(OBJECT_ANNOTATION)
}
