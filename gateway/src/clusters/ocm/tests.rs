//! When a `ManagedCluster` rebuilds its cluster, and when the log mentions it.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::clusters::lines::Lines;

fn managed(accepted: bool, url: &str) -> ManagedCluster {
    let spec = json!({"hubAcceptsClient": accepted, "managedClusterClientConfigs": [{"url": url}]});
    serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).expect("a ManagedCluster")
}

fn look(ocm: &mut Ocm) {
    let labels = BTreeMap::from([("cluster.core.oam.dev/cluster-credential-type".to_owned(), "Nothing".to_owned())]);
    let view = SecretView {
        name: "a",
        uid: "u",
        resource_version: "1",
        creation_timestamp: None,
        labels: &labels,
        annotations: &BTreeMap::new(),
        data: &BTreeMap::new(),
    };
    // Whether the cluster is usable does not matter here.
    let _ = ocm.spec(&view, SecretRules::default());
}

/// Whether the cluster must be rebuilt. Rebuilds it, as its owner would.
fn is_outdated(ocm: &mut Ocm) -> bool {
    let outdated = !ocm.outdated().is_empty();
    if outdated {
        look(ocm);
    }
    outdated
}

#[test]
fn only_what_counts_makes_a_cluster_anew() {
    let known = Arc::new(ManagedClusters::default());
    let mut ocm = Ocm::new(Arc::clone(&known));
    look(&mut ocm);
    for (next, expected) in [
        (vec![managed(false, "https://thief")], true),
        (vec![managed(false, "https://another")], false),
        (vec![managed(true, "https://another")], true),
        (vec![managed(true, "https://another")], false),
        (vec![managed(true, "https://moved")], true),
        (vec![managed(false, "https://moved")], true),
        (vec![], true),
        (vec![], false),
    ] {
        let said = format!("{next:?}");
        known.set(next);
        assert_eq!(is_outdated(&mut ocm), expected, "{said}");
    }
}

#[test]
fn one_that_is_not_accepted_is_told_of_once() {
    let known = Arc::new(ManagedClusters::default());
    let mut ocm = Ocm::new(Arc::clone(&known));
    let (lines, _guard) = Lines::collect();
    look(&mut ocm);
    for url in ["https://thief", "https://another", "https://third"] {
        known.set([managed(false, url)]);
        is_outdated(&mut ocm);
        look(&mut ocm);
    }
    let told = lines.take();
    assert!(told.len() == 1 && told[0].starts_with("WARN"), "{told:?}");
    assert!(["\"a\"", "hubAcceptsClient", "not accepted"].iter().all(|word| told[0].contains(word)), "{told:?}");
    known.set([managed(true, "https://thief")]);
    is_outdated(&mut ocm);
    assert_eq!(lines.take(), [""; 0]);
    known.set([managed(false, "https://thief")]);
    is_outdated(&mut ocm);
    assert_eq!(lines.take().len(), 1, "again, since it is news again");
}
