//! Everything that may run beside registration, in one installation, with the chart's rights and
//! under its policies: one object of each source and part, from creation to deletion.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hub_tests::testbed::{Route, Testbed};
use hub_tests::{turns, wait};
use kit::lines;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::{Instant, timeout};

use super::{ALONE, Registration, accept, exists, get, is_own, managed, wait_condition};
use crate::fixture::{
    SOON, apply, condition, kubeconfig_secret, member_kubeconfig, namespace, print, profile_kind, said, secret_field,
    wait_end, wait_gone, wait_secret,
};
use crate::rights::{NAME as ACCOUNT, nothing_refused};
use crate::{accounts, argocd, replica_sets, works};

const PLACE: &str = "together-controllers";
/// The namespace of the clusters that the testbed's gateway serves.
const CLUSTERS: &str = "vela-system";
/// The namespace of the objects that register clusters, of profiles, and of Placements.
const FLEET: &str = "together-fleet";
const ARGO: &str = "together-argocd";
/// The cluster that joins.
const NAME: &str = "together1";
/// Other clusters, by their source.
const OTHERS: [&str; 2] = ["together-kubeconfig", "together-capi"];
const VALUES: &str = ",secretNamespace=vela-system,controllers.watchNamespaces={together-fleet},\
                      controllers.sources.capi=true,controllers.sources.kubeconfig=true,controllers.sources.ocm=true,\
                      controllers.parts.managedServiceAccount=true,controllers.parts.clusterProfile=true,\
                      controllers.clusterProfileNamespaces={together-fleet},controllers.parts.argocd=true,\
                      controllers.argocd.namespace=together-argocd,delivery.enabled=true";
/// Time from a denial to the last byte.
const NO_BYTE_AFTER: Duration = Duration::from_secs(1);
/// A Secret that goes sooner after a denial went because the rights were gone. Otherwise it goes
/// after 0.7 s.
const RIGHTS_WITHIN: Duration = Duration::from_millis(600);
const SECRETS: &str = "namespaces/vela-system/secrets";
const SET: &str = "manifestworkreplicaset together -n together-fleet";
const MAP: &str = "configmap together -n default";

pub fn all(testbed: &Testbed) -> Result<()> {
    let names = [ALONE, argocd::ALONE, replica_sets::ALONE, works::ALONE, accounts::ALONE];
    let alone = turns::alone(&names);
    accounts::prepare(testbed)?;
    profile_kind(testbed)?;
    apply(testbed, &[namespace(FLEET), namespace(ARGO), argocd::account(ARGO)])?;
    let mut registration = Registration::started(testbed, PLACE, VALUES, alone)?;
    let done = lives(testbed);
    // Other tests have works that this policy would refuse.
    for policy in registration.policies.iter().filter(|policy| !is_own(policy)) {
        let (kind, name) = (text(&policy["kind"]), text(&policy["metadata"]["name"]));
        testbed.hub.server.delete(&format!("{kind} {name}"))?;
    }
    done?;
    registration.running.stop()
}

fn lives(testbed: &Testbed) -> Result<()> {
    let mark = testbed.log()?.len();
    joins(testbed)?;
    registered(testbed)?;
    reached(testbed)?;
    delivered(testbed)?;
    let log = testbed.log()?;
    let denied = lines::with(&log[mark..], &["denied request: the controllers write"]);
    ensure!(denied.is_empty(), "{denied:?}");
    limited(testbed)?;
    leaves(testbed)?;
    nothing_refused(testbed, PLACE)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Joins a cluster by `ocm-registration` and the source `ocm`.
fn joins(testbed: &Testbed) -> Result<()> {
    let authority = std::fs::read_to_string(testbed.member.server.authority_file())?;
    let mut cluster = managed(NAME);
    cluster["metadata"]["labels"] = json!({"together": "yes"});
    cluster["metadata"]["annotations"] = json!({"cluster.core.oam.dev/delivery": "push"});
    // No agent renews its Lease, so probes decide as soon as it has expired.
    cluster["spec"]["leaseDurationSeconds"] = 1.into();
    cluster["spec"]["managedClusterClientConfigs"] =
        json!([{"url": testbed.member.server.url(), "caBundle": STANDARD.encode(&authority)}]);
    apply(testbed, &[cluster])?;
    accept(testbed, NAME, true)?;
    wait_condition(testbed, NAME, "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    // The credential as an agent writes it.
    let token = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "cluster-gateway", "namespace": NAME, "labels": {accounts::LABEL: "true"}},
        "stringData": {"ca.crt": authority, "token": testbed.member_token}});
    apply(testbed, &[token])?;
    wait_secret(testbed, CLUSTERS, NAME)
}

/// Registers clusters by a kubeconfig Secret and by Cluster API.
fn registered(testbed: &Testbed) -> Result<()> {
    let [by_kubeconfig, by_capi] = OTHERS;
    let kubeconfig = member_kubeconfig(testbed, &testbed.member_token);
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": by_capi, "namespace": FLEET},
        "spec": {"controlPlaneEndpoint": {"host": "10.9.8.7", "port": 6443}}});
    apply(testbed, &[kubeconfig_secret(FLEET, by_kubeconfig, &kubeconfig), cluster])?;
    let uid = get(testbed, &format!("clusters.cluster.x-k8s.io {by_capi} -n {FLEET}"))?["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": by_capi, "uid": uid});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": format!("{by_capi}-kubeconfig"), "namespace": FLEET, "ownerReferences": [owner],
            "labels": {"cluster.x-k8s.io/cluster-name": by_capi}},
        "stringData": {"value": kubeconfig}});
    apply(testbed, &[secret])?;
    OTHERS.iter().try_for_each(|name| wait_secret(testbed, CLUSTERS, name))
}

/// A `ManagedServiceAccount` is filled, a profile published, and a Secret written for Argo CD.
fn reached(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[accounts::account(NAME, "together-reader")])?;
    accounts::filled_one(testbed, NAME, "together-reader")?;
    for name in OTHERS.iter().chain([&NAME]) {
        wait::until(&format!("the profile of {name}"), SOON, || {
            let profile = get(testbed, &format!("clusterprofiles.multicluster.x-k8s.io {name} -n {FLEET}"))?;
            ensure!(said(condition(&profile["status"], "ControlPlaneHealthy")) == "True/Healthy", "{profile}");
            Ok(())
        })?;
    }
    let server = wait::until("Argo CD's Secret", SOON, || {
        secret_field(testbed, ARGO, &format!("cluster-gateway-{NAME}"), "/data/server")
    })?;
    let server = String::from_utf8(STANDARD.decode(server)?)?;
    ensure!(server.ends_with(&format!("/{NAME}/proxy")), "{server}");
    Ok(())
}

/// A Placement chooses the cluster, a set has a work there, and the member has the object.
fn delivered(testbed: &Testbed) -> Result<()> {
    wait_condition(testbed, NAME, "ManagedClusterConditionAvailable", "True/MemberAnswers")?;
    let group = "cluster.open-cluster-management.io";
    let metadata = json!({"name": "together", "namespace": FLEET});
    let binding = json!({"apiVersion": format!("{group}/v1beta2"), "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "default", "namespace": FLEET}, "spec": {"clusterSet": "default"}});
    let selector = json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {"together": "yes"}}}});
    let placement = json!({"apiVersion": format!("{group}/v1beta1"), "kind": "Placement", "metadata": metadata,
        "spec": {"clusterSets": ["default"], "predicates": [selector]}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "together", "namespace": "default"}, "data": {"a": "b"}});
    let set = json!({"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
        "metadata": metadata, "spec": {"manifestWorkTemplate": {"workload": {"manifests": [map]}},
            "placementRefs": [{"name": "together", "rolloutStrategy": {"type": "All"}}]}});
    apply(testbed, &[binding, placement, set])?;
    wait::until("the object on the member", SOON, || {
        let found = testbed.member.server.read(MAP)?;
        ensure!(found["data"]["a"] == "b", "{found}, {}", get(testbed, SET)?);
        Ok(())
    })?;
    wait::until("the set to have succeeded", SOON, || {
        let set = get(testbed, SET)?;
        ensure!(said(condition(&set["status"], "PlacementRolledOut")) == "True/Complete", "{}", set["status"]);
        Ok(())
    })
}

/// The policy limits the Secrets that the controllers may write, although RBAC lets them create
/// Secrets everywhere, for the part that fills `ManagedServiceAccount`s.
fn limited(testbed: &Testbed) -> Result<()> {
    let (hub, me) = (testbed.hub.server.kubectl(), format!("system:serviceaccount:{PLACE}:{ACCOUNT}"));
    let headers = [("impersonate-user", &*me), ("content-type", "application/apply-patch+yaml")];
    let owner = json!([{"apiVersion": "authentication.open-cluster-management.io/v1beta1",
        "kind": "ManagedServiceAccount", "name": "x", "uid": "x"}]);
    let secret = |name: &str, namespace: &str, kind: &str, metadata: Value| {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata});
        secret["metadata"]["name"] = name.into();
        secret["metadata"]["namespace"] = namespace.into();
        secret
    };
    let token = json!({"labels": {accounts::LABEL: "true"}, "ownerReferences": owner});
    let of_account = json!({"labels": {accounts::LABEL: "true"}, "ownerReferences": owner,
        "annotations": {"kubernetes.io/service-account.name": "default"}});
    apply(testbed, &[secret("person", FLEET, "Opaque", json!({}))])?;
    for (object, is_let) in [
        (secret("other", ARGO, "Opaque", json!({})), false),
        (secret("cluster-gateway-x", FLEET, "Opaque", json!({})), false),
        (secret("x", FLEET, "Opaque", json!({"labels": {accounts::LABEL: "true"}})), false),
        (secret("x", FLEET, "kubernetes.io/service-account-token", of_account), false),
        (secret("person", FLEET, "Opaque", token.clone()), false),
        (secret("x", FLEET, "Opaque", token), true),
        (secret("cluster-gateway-x", ARGO, "Opaque", json!({})), true),
        (secret("x", CLUSTERS, "Opaque", json!({})), true),
    ] {
        let [namespace, name] = ["namespace", "name"].map(|field| object["metadata"][field].as_str());
        let (namespace, name) = namespace.zip(name).context("a name")?;
        let query = "dryRun=All&fieldManager=kubectl&force=false&fieldValidation=Strict";
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}?{query}");
        let answer = hub.send(&Method::PATCH, &path, &headers, &object)?;
        let is_refused = answer.text().contains("write Secrets of clusters only");
        ensure!((answer.status.is_success(), is_refused) == (is_let, !is_let), "{object}: {}", answer.text());
    }
    Ok(())
}

/// Denies the cluster, which the gateway reaches without a tunnel, while a watch runs, and accepts
/// it again. Returns the time until the watch ended.
fn denied(testbed: &Testbed) -> Result<Duration> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let path = format!("{}/api/v1/namespaces?watch=1", Testbed::proxy_path(NAME));
    let authorization = format!("Bearer {}", testbed.token);
    let mark = testbed.audit.mark()?;
    let client = testbed.client(Route::Gateway);
    let mut watch = runtime.block_on(client.open(&path, &[("authorization", &authorization)]))?;
    ensure!(watch.status() == StatusCode::OK, "{}", watch.status());
    runtime.block_on(async { timeout(SOON, watch.frame()).await })?.context("a watch without an event")??;
    accept(testbed, NAME, false)?;
    let said = Instant::now();
    let rest = async {
        while let Some(frame) = watch.frame().await {
            if frame.is_err() {
                return Ok(said.elapsed());
            }
        }
        Err(anyhow!("a watch that was cut off looks finished"))
    };
    let took = runtime.block_on(async { timeout(SOON, rest).await }).context("the watch goes on")??;
    let writes = wait::until("the Secret's end in the log", SOON, || {
        let writes = testbed.audit.writes((PLACE, ACCOUNT), mark)?;
        ensure!(writes.iter().any(|write| is_end(write, SECRETS)), "{writes:?}");
        Ok(writes)
    })?;
    let last = |of: &str| writes.iter().rposition(|write| is_end(write, of));
    let rights = ["rolebindings", "clusterrolebindings", "clusterroles"].into_iter().filter_map(last).max();
    let is_first = rights.is_some() && rights < last(SECRETS);
    print(&format!("without a tunnel, the last byte came {took:?} after a no; the rights went first: {is_first}"));
    // Rights that the hub is slow to take are waited for only so long.
    ensure!(is_first || took > RIGHTS_WITHIN, "the Secret went before the rights: {writes:?}");
    // The rights are there again before another denial.
    wait_condition(testbed, NAME, "HubAcceptedManagedCluster", "False/HubClusterAdminDenied")?;
    accept(testbed, NAME, true)?;
    wait_condition(testbed, NAME, "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    wait_secret(testbed, CLUSTERS, NAME)?;
    Ok(took)
}

/// Whether a write ended an object of the cluster, of this resource.
fn is_end(write: &str, resource: &str) -> bool {
    write.starts_with("delete ") && write.contains(&format!("/{resource}/")) && write.contains(NAME)
}

/// Each object's deletion removes what it led to.
fn leaves(testbed: &Testbed) -> Result<()> {
    let hub = &testbed.hub.server;
    hub.delete(&format!("{SET} --wait=false"))?;
    wait_end(hub, &format!("manifestworks -n {NAME}"))?;
    wait_end(&testbed.member.server, MAP)?;
    hub.delete(&format!("placement together -n {FLEET}"))?;
    hub.delete(&format!("{} together-reader -n {NAME}", accounts::KIND))?;
    wait_end(&testbed.member.server, &format!("serviceaccount together-reader -n {}", accounts::PLACE))?;
    hub.delete(&format!("secret {} -n {FLEET}", OTHERS[0]))?;
    hub.delete(&format!("clusters.cluster.x-k8s.io {} -n {FLEET}", OTHERS[1]))?;
    hub.delete(&format!("secret {}-kubeconfig -n {FLEET} --ignore-not-found", OTHERS[1]))?;
    wait::timely("the last byte after a no, without a tunnel", NO_BYTE_AFTER, || denied(testbed))?;
    wait_secret(testbed, ARGO, &format!("cluster-gateway-{NAME}"))?;
    hub.delete(&format!("managedcluster {NAME}"))?;
    for name in OTHERS.iter().chain([&NAME]) {
        wait_gone(testbed, CLUSTERS, name)?;
        wait_end(hub, &format!("clusterprofiles.multicluster.x-k8s.io {name} -n {FLEET}"))?;
    }
    wait_gone(testbed, ARGO, &format!("cluster-gateway-{NAME}"))?;
    ensure!(!exists(testbed, &format!("managedcluster {NAME}"))?, "it is left");
    hub.delete(&format!("managedclustersetbinding default -n {FLEET}")).context("the binding")
}
