//! Cluster Secrets that are created, changed, relabelled, broken, repaired and deleted, and what a
//! client should see of them.

use std::path::Path;

use anyhow::{Context as _, Result};
use hub_tests::follower;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::informer::{Cache, Entry};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const KIND: &str = "cluster.core.oam.dev/cluster-credential-type";
const ENDPOINT: &str = "endpoint";
/// The most Secrets at a time.
const SECRETS: usize = 10;

/// Changes Secrets `<prefix>-0` to `<prefix>-9`, the same way every time.
pub(super) struct Churn {
    runtime: Runtime,
    secrets: Api<Secret>,
    prefix: String,
    made: usize,
}

/// The changes of a Secret. After each of them, the next one makes a difference that a watcher can
/// see.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Another endpoint: MODIFIED.
    Move,
    /// The label by which the gateway knows it is removed: DELETED, although the Secret stays.
    Unlabel,
    /// The label is back: ADDED.
    Label,
    /// Without an endpoint it is no cluster: DELETED, although it still matches the selector.
    Break,
    /// ADDED.
    Mend,
    Delete,
    /// The same name with another uid.
    Create,
}

const CYCLE: [Change; 7] =
    [Change::Move, Change::Unlabel, Change::Label, Change::Break, Change::Mend, Change::Delete, Change::Create];

/// Positions in the cycle at which a new Secret can start.
const BEGINNINGS: [usize; 4] = [0, 1, 3, 5];

// === impl Churn ===

impl Churn {
    pub(super) fn new(kubeconfig: &Path, prefix: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let secrets = Api::namespaced(runtime.block_on(follower::client(kubeconfig))?, SECRET_NAMESPACE);
        Ok(Self { runtime, secrets, prefix: prefix.to_owned(), made: 0 })
    }

    /// Makes the next `count` changes.
    pub(super) fn change(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (round, index) = (self.made / SECRETS, self.made % SECRETS);
            // Neighbours are at different positions of the cycle, so that all kinds of changes are
            // mixed.
            let at = (round + CYCLE.len() - 1 + BEGINNINGS[index % BEGINNINGS.len()]) % CYCLE.len();
            let change = if round == 0 { Change::Create } else { CYCLE[at] };
            let name = format!("{}-{index}", self.prefix);
            let made = self.made;
            self.runtime.block_on(self.apply(&name, change)).with_context(|| format!("{change:?} {name} ({made})"))?;
            self.made += 1;
        }
        Ok(())
    }

    /// What every client should see, read from the Secrets themselves.
    pub(super) fn truth(&self) -> Result<Cache> {
        let listed = self.runtime.block_on(self.secrets.list(&ListParams::default().labels(KIND)))?;
        let entries = listed.items.into_iter().filter_map(|secret| {
            let endpoint = secret.data.as_ref()?.get(ENDPOINT).map(|bytes| String::from_utf8_lossy(&bytes.0))?;
            let (metadata, endpoint) = (&secret.metadata, endpoint.into_owned());
            let entry =
                Entry { uid: metadata.uid.clone()?, resource_version: metadata.resource_version.clone()?, endpoint };
            (!entry.endpoint.is_empty()).then_some((metadata.name.clone()?, entry))
        });
        Ok(self.own(entries.collect()))
    }

    /// The clusters of `cache` that belong to this churn: other tests have clusters, too.
    pub(super) fn own(&self, mut cache: Cache) -> Cache {
        let prefix = format!("{}-", self.prefix);
        cache.retain(|name, _| name.starts_with(&prefix));
        cache
    }

    /// Removes everything.
    pub(super) fn clean(&self) {
        for index in 0..SECRETS {
            let (name, how) = (format!("{}-{index}", self.prefix), DeleteParams::default());
            drop(self.runtime.block_on(self.secrets.delete(&name, &how))); // it may be gone already
        }
    }

    async fn apply(&self, name: &str, change: Change) -> Result<()> {
        let endpoint = format!("https://{name}.example:{}", 10_000 + self.made);
        let patch = match change {
            Change::Create => {
                self.secrets.create(&PostParams::default(), &secret(name, &endpoint)?).await?;
                return Ok(());
            }
            Change::Delete => {
                self.secrets.delete(name, &DeleteParams::default()).await?;
                return Ok(());
            }
            Change::Move | Change::Mend => json!({"stringData": {ENDPOINT: endpoint}}),
            Change::Break => json!({"data": {ENDPOINT: null}}),
            Change::Unlabel => json!({"metadata": {"labels": {KIND: null}}}),
            Change::Label => json!({"metadata": {"labels": {KIND: "ServiceAccountToken"}}}),
        };
        self.secrets.patch(name, &PatchParams::default(), &Patch::<Value>::Merge(patch)).await?;
        Ok(())
    }
}

fn secret(name: &str, endpoint: &str) -> Result<Secret> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {KIND: "ServiceAccountToken"}},
        "stringData": {ENDPOINT: endpoint, "token": "nobody's"},
    }))?)
}
