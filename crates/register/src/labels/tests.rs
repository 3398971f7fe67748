use super::*;

fn taken_of(labels: &[(&str, &str)]) -> Vec<String> {
    taken(&labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()).into_keys().collect()
}

#[test]
fn users_labels_are_taken() {
    let labels = [("team", "a"), ("example.com/env", "prod"), ("cluster.open-cluster-management.io/clusterset", "s")];
    assert_eq!(taken_of(&labels).len(), 3);
    assert_eq!(taken_of(&[("empty", "")]), ["empty"]);
    // Domains that only resemble the excluded ones.
    assert_eq!(taken_of(&[("notk8s.io/a", ""), ("oam.dev.example/a", ""), ("oam.dev", "")]).len(), 3);
}

#[test]
fn what_says_what_a_secret_is_is_not_taken() {
    for key in [
        "cluster.core.oam.dev/cluster-credential-type",
        "cluster.core.oam.dev/cluster-endpoint-type",
        "cluster.core.oam.dev/kubeconfig",
        "app.oam.dev/name",
        "oam.dev/a",
        "app.kubernetes.io/managed-by",
        "kubernetes.io/metadata.name",
        "cluster.x-k8s.io/cluster-name",
        "x-k8s.io/cluster-manager",
        "sigs.k8s.io/multicluster-runtime-kubeconfig",
        "k8s.io/a",
        "argocd.argoproj.io/instance",
        "objectset.rio.cattle.io/hash",
        "kustomize.toolkit.fluxcd.io/name",
        "kapp.k14s.io/app",
        "helm.sh/chart",
    ] {
        assert_eq!(taken_of(&[(key, "a")]), [""; 0], "{key}");
    }
}

#[test]
fn what_no_label_can_be_is_dropped() {
    let long = "v".repeat(64);
    for (key, value) in [
        ("team", long.as_str()),
        ("team", "a b"),
        ("team", "-"),
        ("", ""),
        ("a/b/c", ""),
        ("K8s.io/a", ""),
        ("/a", ""),
        (long.as_str(), ""),
    ] {
        assert_eq!(taken_of(&[(key, value)]), [""; 0], "{key}={value}");
    }
}

#[test]
fn there_is_a_most() {
    let many: BTreeMap<_, _> = (0..1000).map(|n| (format!("a{n:03}"), String::new())).collect();
    let taken = taken(&many);
    assert_eq!((taken.len(), taken.keys().last().map(String::as_str)), (64, Some("a063")));
}
