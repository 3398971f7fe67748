//! Which labels of a source object its cluster's Secret gets.
//!
//! Labels select: on a Secret they say what it is, and to whom it belongs. The labels of a source
//! object must not decide that.

use std::collections::BTreeMap;

use api::selector::label::{is_key, is_value};

/// Labels of an object that are taken. People have ten; each is in the gateway's memory, and in
/// every answer about clusters.
pub const MOST: usize = 64;

/// Domains whose labels are not taken, with all below them.
const KEPT_OUT: [&str; 9] = [
    // Kubernetes' own, which say what an object is and what manages it; Cluster API's are of
    // `x-k8s.io`, those of tools of its interest groups of `k8s.io`.
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    // The contract of cluster Secrets, which sources are read, KubeVela's.
    "oam.dev",
    // Tools that take what bears their label for theirs, and delete it when they do not know it:
    // Argo CD, Rancher's and Flux's controllers, Helm, kapp.
    "argoproj.io",
    "cattle.io",
    "fluxcd.io",
    "helm.sh",
    "k14s.io",
];

/// The labels to take over. What no label can be is dropped, and so are more than 64, by key.
pub fn taken(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_taken = |(key, value): &(&String, &String)| is_key(key) && is_value(value) && !is_kept_out(key);
    labels.iter().filter(is_taken).take(MOST).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Labels without a domain are users' own.
fn is_kept_out(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let is_in =
        |kept_out: &str| domain.strip_suffix(kept_out).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    KEPT_OUT.into_iter().any(is_in)
}

#[cfg(test)]
mod tests;
