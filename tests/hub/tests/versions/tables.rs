//! The output of the reading commands for `clustergateways` and `virtualclusters`.

use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;

use super::{Version, register, run};

/// Command lines, and parts that the output must have; `CLUSTER` stands for the trial's own
/// cluster.
const COMMANDS: &[(&str, &[&str])] = &[
    ("get clustergateways -o name", &["clustergateway.cluster.core.oam.dev/CLUSTER\n"]),
    ("get clustergateways -o wide", &["NAME", "CLUSTER", "ServiceAccountToken", "Const"]),
    (
        "get clustergateway CLUSTER -o yaml",
        &["kind: ClusterGateway\n", "name: CLUSTER\n", "type: ServiceAccountToken\n"],
    ),
    ("get vc CLUSTER -o yaml", &["kind: VirtualCluster\n", "credential-type: ServiceAccountToken\n"]),
    ("get vc local -o name", &["virtualcluster.cluster.core.oam.dev/local\n"]),
    (
        "get vcluster,vclusters,virtual-cluster,virtual-clusters -o name",
        &["virtualcluster.cluster.core.oam.dev/CLUSTER\n"],
    ),
    ("get virtualclusters -o wide", &["NAME", "ALIAS", "CREDENTIAL_TYPE", "CREATION_TIMESTAMP", "CLUSTER"]),
    ("describe clustergateway CLUSTER", &["Name:         CLUSTER\n", "ServiceAccountToken"]),
    ("describe virtualcluster CLUSTER", &["Name:         CLUSTER\n", "ServiceAccountToken"]),
    ("explain clustergateways", &["ClusterGateway", "spec", "status", "FIELD"]),
    ("explain clustergateways.spec.access", &["endpoint", "credential"]),
    ("explain virtualclusters.spec", &["alias", "accepted"]),
    ("explain clustergateways --recursive", &["caBundle", "serviceAccountToken", "healthy"]),
];

pub(super) fn tables(testbed: &Testbed, version: Version, route: Route) -> Result<()> {
    let kubectl = version.viewer(testbed, route)?;
    let cluster = &format!("tables-{version:?}-{}", route.name()).to_lowercase();
    register(testbed, &kubectl, cluster)?;
    // `explain` of this version needs OpenAPI v2 before it uses v3; the hub has it, the gateway
    // does not.
    let explains = !matches!((version, route), (Version::Oldest, Route::Gateway));
    for (line, parts) in COMMANDS.iter().filter(|(line, _)| explains || !line.starts_with("explain")) {
        let line = line.replace("CLUSTER", cluster);
        let output = run(&kubectl, &line)?;
        let text = &output.stdout;
        for part in parts.iter().map(|part| part.replace("CLUSTER", cluster)) {
            ensure!(output.status == 0 && text.contains(&part), "{line}: no {part:?} in {output:#?}");
        }
        ensure!(!text.contains(&testbed.member_token), "{line}: the token can be read");
    }
    discovery(&kubectl)?;
    headings(&kubectl, cluster)?;
    selectors(testbed, &kubectl, cluster)?;
    absent(&kubectl)?;
    testbed.hub.forget_member(cluster)
}

fn discovery(kubectl: &Kubectl) -> Result<()> {
    let text = kubectl.ok("api-resources --api-group=cluster.core.oam.dev --no-headers --cached=false -o wide")?;
    let row = |name: &str| {
        let row = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|row| row[0] == name);
        row.with_context(|| format!("no {name} in {text}"))
    };
    let version = "cluster.core.oam.dev/v1alpha1";
    ensure!(row("clustergateways")?[1..] == [version, "false", "ClusterGateway", "get,list,watch"], "{text}");
    let names = "vc,vcluster,vclusters,virtual-cluster,virtual-clusters";
    ensure!(row("virtualclusters")?[1..] == [names, version, "false", "VirtualCluster", "get,list,watch"], "{text}");
    ensure!(text.lines().count() == 2, "{text}"); // subresources are not resources of their own
    Ok(())
}

fn headings(kubectl: &Kubectl, cluster: &str) -> Result<()> {
    let expected = [
        ("clustergateways", ["NAME", "PROVIDER", "CREDENTIAL-TYPE", "ENDPOINT-TYPE", "HEALTHY"].as_slice()),
        ("virtualclusters", &["NAME", "ALIAS", "CREDENTIAL_TYPE", "ENDPOINT", "ACCEPTED", "LABELS"]),
    ];
    for (resource, heading) in expected {
        let text = kubectl.ok(&format!("get {resource}"))?;
        let first: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
        ensure!(first == heading, "{text}");
        ensure!(text.lines().any(|line| line.split_whitespace().next() == Some(cluster)), "{text}");
    }
    let object: Value = serde_json::from_str(&kubectl.ok(&format!("get clustergateway {cluster} -o json"))?)?;
    let named = object["metadata"]["name"] == cluster && object["apiVersion"] == "cluster.core.oam.dev/v1alpha1";
    ensure!(named && object["metadata"]["uid"].is_string(), "{object}");
    Ok(())
}

fn selectors(testbed: &Testbed, kubectl: &Kubectl, cluster: &str) -> Result<()> {
    for resource in ["clustergateways", "virtualclusters"] {
        let found = kubectl.ok(&format!("get {resource} --field-selector=metadata.name={cluster} -o name"))?;
        ensure!(found.lines().count() == 1 && found.contains(cluster), "{resource}: {found}");
        let others = kubectl.ok(&format!("get {resource} --field-selector=metadata.name!={cluster} -o name"))?;
        ensure!(others.contains(&format!("/{CLUSTER}\n")) && !others.contains(&format!("/{cluster}\n")), "{others}");
    }
    let label = format!("suite={cluster}");
    testbed.hub.server.label(&format!("secret {cluster} -n vela-system {label}"))?;
    for resource in ["clustergateways", "virtualclusters"] {
        wait::until(&format!("{resource} with the label"), super::LIMIT, || {
            let found = kubectl.ok(&format!("get {resource} -l {label} -o name"))?;
            ensure!(found.lines().count() == 1 && found.contains(cluster), "{found}");
            Ok(())
        })?;
    }
    let unknown = run(kubectl, "get clustergateways --field-selector=spec.provider=x")?;
    ensure!(unknown.status == 1 && unknown.stderr.contains("field"), "{unknown:?}");
    Ok(())
}

fn absent(kubectl: &Kubectl) -> Result<()> {
    for (resource, line) in [("clustergateways", "get clustergateway absent"), ("virtualclusters", "get vc absent")] {
        let output = run(kubectl, line)?;
        let expected = format!("Error from server (NotFound): {resource}.cluster.core.oam.dev \"absent\" not found\n");
        ensure!(output.status == 1 && output.stderr == expected, "{output:?}");
    }
    let created = kubectl.args(["create", "-f", "-"]).stdin(CREATE).run()?;
    ensure!(created.status == 1 && !created.stderr.is_empty(), "{created:?}");
    Ok(())
}

/// Clusters are created as Secrets.
const CREATE: &str = "{apiVersion: cluster.core.oam.dev/v1alpha1, kind: ClusterGateway, metadata: {name: made}}";
