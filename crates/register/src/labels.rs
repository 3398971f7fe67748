//! Which labels of a source object its cluster's Secret gets.
//!
//! Labels on a Secret select it: they say what it is, and to whom it belongs. The labels of a
//! source object must not decide that.

use std::collections::BTreeMap;

use api::selector::label::{is_key, is_value};

/// Limit of labels taken from an object. Objects usually have ten; the gateway keeps each in
/// memory, and returns it in every response about clusters.
pub const MOST: usize = 64;

/// Domains whose labels are not taken, including their subdomains.
const KEPT_OUT: [&str; 9] = [
    // Kubernetes' own, which say what an object is and what manages it; Cluster API's are in
    // `x-k8s.io`, those of tools of its interest groups in `k8s.io`.
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    // The contract of cluster Secrets, the choice of the sources to read, and KubeVela's.
    "oam.dev",
    // Tools that treat an object with their label as theirs, and delete it when they do not know
    // it: Argo CD, Rancher's and Flux's controllers, Helm, kapp.
    "argoproj.io",
    "cattle.io",
    "fluxcd.io",
    "helm.sh",
    "k14s.io",
];

/// The labels to take over. Invalid labels are dropped, and of the others, all but the first 64 by
/// key.
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
