//! Secrets with a kubeconfig that people or tools label as clusters (`--kubeconfig-selector`): for
//! example a workspace of kcp, or a cluster of a cloud.

use api::secret::CREDENTIAL_TYPE_LABEL;

use crate::kubeconfig::cluster;
use crate::reading::{Reading, SecretObject};
use crate::{Refused, Rules, labels};

/// Keys that may hold the kubeconfig; the first one present is used. multicluster-runtime's is
/// `kubeconfig`, Cluster API's `value`, Argo CD's and others' `config`.
const KEYS: [&str; 3] = ["kubeconfig", "value", "config"];

/// Reads the cluster of the kubeconfig in `secret`.
pub fn read(secret: &SecretObject, rules: &Rules) -> Reading {
    // With a selector on a label that is copied, our own Secrets would be read here.
    if secret.labels.contains_key(CREDENTIAL_TYPE_LABEL) {
        return Refused::IsCluster.into();
    }
    let Some(kubeconfig) = KEYS.into_iter().find_map(|key| secret.value(key)) else {
        return Refused::NoKey(KEYS[0]).into();
    };
    match cluster(kubeconfig, rules) {
        Ok(mut cluster) => {
            cluster.labels = labels::taken(&secret.labels);
            Reading::Register(Box::new(cluster))
        }
        Err(refused) => refused.into(),
    }
}

#[cfg(test)]
mod tests;
