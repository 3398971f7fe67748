//! Objects on the hub: clusters, a choice of all of them, and works for each.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use hub_tests::tools;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::caller::Caller;
use crate::clusters::name;
use crate::hub_objects;
use crate::size::Size;
use crate::testbed::HubSide;

const CLUSTER: &str = "cluster.open-cluster-management.io";
const WORK: &str = "work.open-cluster-management.io";
const KINDS: [&str; 4] = ["cluster/v1/0000_00", "cluster/v1beta1/0000_0", "work/v1/0000_00", "work/v1alpha1/0000_00"];
/// Namespace of the sets and of their Placement, and the Placement's name.
const NAMESPACE: &str = "bench-delivery";
const CHOICE: &str = "all";
/// Clusters of one decision.
const OF_DECISION: usize = 100;
/// Label of the clusters of this scenario.
const LABEL: &str = "bench=delivery";
/// The work, and its object, that is changed to see how soon it arrives.
const PROBE: &str = "probe";
/// Filler of each object, besides the part that changes.
const FILLING: usize = 200;
/// Limit for the works to be made.
const MADE: Duration = Duration::from_mins(15);
const PAUSE: Duration = Duration::from_secs(1);

/// Kinds, namespaces, and the decisions that choose all clusters. `runtime` sends many requests;
/// not to be called on a runtime.
pub fn lay(runtime: &Runtime, side: &HubSide, hub: &Caller, size: Size) -> Result<()> {
    side.install(&tools::kinds("open-cluster-management.io/api", &KINDS)?)?;
    side.hub.apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})])?;
    let namespace = |number: usize| {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name(number)}});
        Ok(("/api/v1/namespaces".to_owned(), object))
    };
    runtime.block_on(hub_objects::create(hub, size.clusters, Arc::new(namespace)))?;
    let count = size.clusters.div_ceil(OF_DECISION);
    let decisions: Vec<String> = (1..=count).map(|number| format!("{CHOICE}-decision-{number}")).collect();
    side.hub.apply(&undecided(&decisions))?;
    runtime.block_on(choose(hub, size, &decisions))
}

/// A Placement and decisions of these names, without a status.
fn undecided(decisions: &[String]) -> Vec<Value> {
    let version = format!("{CLUSTER}/v1beta1");
    let labels = json!({format!("{CLUSTER}/placement"): CHOICE, format!("{CLUSTER}/decision-group-index"): "0",
        format!("{CLUSTER}/decision-group-name"): ""});
    let placement = json!({"apiVersion": version, "kind": "Placement",
        "metadata": {"name": CHOICE, "namespace": NAMESPACE}, "spec": {}});
    let decision = |name: &String| {
        json!({"apiVersion": version, "kind": "PlacementDecision",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}})
    };
    [placement].into_iter().chain(decisions.iter().map(decision)).collect()
}

/// Has them choose all clusters.
async fn choose(hub: &Caller, size: Size, names: &[String]) -> Result<()> {
    let connection = hub.connect().await?;
    let all: Vec<Value> = (0..size.clusters).map(|number| json!({"clusterName": name(number), "reason": ""})).collect();
    let path = format!("/apis/{CLUSTER}/v1beta1/namespaces/{NAMESPACE}");
    for (decision, clusters) in names.iter().zip(all.chunks(OF_DECISION)) {
        let status = json!({"status": {"decisions": clusters}});
        hub.ask(&connection, hub.merge(&format!("{path}/placementdecisions/{decision}/status"), &status)?).await?;
    }
    let group = json!({"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": names,
        "clusterCount": size.clusters});
    let status =
        json!({"status": {"numberOfSelectedClusters": size.clusters, "decisionGroups": [group], "conditions": []}});
    hub.ask(&connection, hub.merge(&format!("{path}/placements/{CHOICE}/status"), &status)?).await.map(drop)
}

/// A `ManifestWorkReplicaSet` for each work of a cluster, and a work beside them. Returns when
/// their controller has made all works.
pub async fn works(hub: &Caller, size: Size) -> Result<()> {
    let sets = |number: usize| {
        let spec = json!({"manifestWorkTemplate": {"workload": {"manifests": manifests(number, "0")}},
            "placementRefs": [{"name": CHOICE, "rolloutStrategy": {"type": "All"}}],
            "cascadeDeletionPolicy": "Background"});
        let object = json!({"apiVersion": format!("{WORK}/v1alpha1"), "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": set(number), "namespace": NAMESPACE}, "spec": spec});
        Ok((format!("/apis/{WORK}/v1alpha1/namespaces/{NAMESPACE}/manifestworkreplicasets"), object))
    };
    hub_objects::create(hub, size.works, Arc::new(sets)).await?;
    let probes = |number: usize| {
        let object = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
            "metadata": {"name": PROBE, "namespace": name(number)}, "spec": probe("0")});
        Ok((format!("/apis/{WORK}/v1/namespaces/{}/manifestworks", name(number)), object))
    };
    hub_objects::create(hub, size.clusters, Arc::new(probes)).await?;
    let (connection, begin) = (hub.connect().await?, Instant::now());
    let wanted = size.clusters * (size.works + 1);
    loop {
        let text = hub.ask(&connection, hub.get(&format!("/apis/{WORK}/v1/manifestworks?limit=1"))?).await?;
        let list: Value = serde_json::from_slice(&text)?;
        let there = 1 + list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        if there >= u64::try_from(wanted)? {
            return Ok(());
        }
        ensure!(begin.elapsed() < MADE, "{there} of {wanted} works are made");
        sleep(PAUSE).await;
    }
}

/// Clusters that are delivered to.
pub async fn open(hub: &Caller, size: Size) -> Result<()> {
    let (key, value) = LABEL.split_once('=').unwrap_or_default();
    let make = move |number: usize| {
        let metadata = json!({"name": name(number), "labels": {key: value},
            "annotations": {"cluster.core.oam.dev/delivery": "push"}});
        let object = json!({"apiVersion": format!("{CLUSTER}/v1"), "kind": "ManagedCluster", "metadata": metadata,
            "spec": {"hubAcceptsClient": false}});
        Ok((format!("/apis/{CLUSTER}/v1/managedclusters"), object))
    };
    hub_objects::create(hub, size.clusters, Arc::new(make)).await
}

/// Deletes the clusters. Their members keep the objects.
pub async fn close(hub: &Caller) -> Result<()> {
    let connection = hub.connect().await?;
    let path = format!("/apis/{CLUSTER}/v1/managedclusters?labelSelector={LABEL}");
    hub.ask(&connection, hub.request(Method::DELETE, &path, bytes::Bytes::new())?).await.map(drop)
}

/// Something is said of a cluster: that it is back, maybe.
pub async fn touch(hub: &Caller, number: usize, text: &str) -> Result<()> {
    let path = format!("/apis/{CLUSTER}/v1/managedclusters/{}", name(number));
    write(hub, &path, &json!({"metadata": {"annotations": {"bench": text}}})).await
}

/// Gives the first set another template.
pub async fn edit_template(hub: &Caller, text: &str) -> Result<()> {
    let path = format!("/apis/{WORK}/v1alpha1/namespaces/{NAMESPACE}/manifestworkreplicasets/{}", set(0));
    let template = json!({"workload": {"manifests": manifests(0, text)}});
    write(hub, &path, &json!({"spec": {"manifestWorkTemplate": template}})).await
}

/// Changes the probe of a cluster.
pub async fn edit_probe(hub: &Caller, number: usize, text: &str) -> Result<()> {
    let path = format!("/apis/{WORK}/v1/namespaces/{}/manifestworks/{PROBE}", name(number));
    write(hub, &path, &json!({"spec": probe(text)})).await
}

/// Path of the probe's object on a member.
pub fn probe_path() -> String {
    path(PROBE)
}

/// Path of the last object of the template, on a member.
pub fn template_path() -> String {
    path(&templated(0, Size::OBJECTS - 1))
}

fn path(config_map: &str) -> String {
    format!("/api/v1/namespaces/default/configmaps/{config_map}")
}

async fn write(hub: &Caller, path: &str, change: &Value) -> Result<()> {
    let connection = hub.connect().await?;
    hub.ask(&connection, hub.merge(path, change)?).await.map(drop)
}

fn set(number: usize) -> String {
    format!("set-{number}")
}

fn manifests(set: usize, text: &str) -> Vec<Value> {
    (0..Size::OBJECTS).map(|number| config_map(&templated(set, number), text)).collect()
}

fn templated(set: usize, number: usize) -> String {
    format!("set-{set}-{number}")
}

fn probe(text: &str) -> Value {
    json!({"workload": {"manifests": [config_map(PROBE, text)]}})
}

fn config_map(name: &str, text: &str) -> Value {
    let data = json!({"changes": text, "stays": "x".repeat(FILLING)});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}
