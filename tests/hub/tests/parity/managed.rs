//! Open Cluster Management next to the gateway: its kind `ManagedCluster` is defined on the hub
//! while the gateway runs, and removed again.
//!
//! One trial, since the whole hub knows the kind: without it, with it, with objects, and without it
//! again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::kubectl::Running;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};
use crate::viewer;

/// Time for the gateway to find the kind, for which it looks periodically, and for the hub to serve
/// it.
const FOUND: Duration = Duration::from_mins(1);
/// Time for changes, which arrive by a watch once the kind is found.
const SEEN: Duration = Duration::from_secs(5);
const SPOKE: &str = "managed-spoke";
const BOTH: &str = "managed-twice";
const KIND: &str = "managedclusters.cluster.open-cluster-management.io";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "parity::ManagedClusters whose kind comes later and goes", managed)]
}

fn kind() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": KIND},
        "spec": {
            "group": "cluster.open-cluster-management.io",
            "scope": "Cluster",
            "names": {"plural": "managedclusters", "singular": "managedcluster", "kind": "ManagedCluster"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn cluster(name: &str, url: Option<&str>, authority: &str, labels: &Value) -> Value {
    let configs: Vec<Value> =
        url.map(|url| json!({"url": url, "caBundle": BASE64.encode(authority)})).into_iter().collect();
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": configs},
    })
}

fn virtual_cluster(testbed: &Testbed, name: &str) -> Result<Value> {
    viewer::get(testbed, Route::Gateway, &format!("/virtualclusters/{name}"))?.expect(StatusCode::OK)?.json()
}

/// A list from before the gateway noticed the kind is refused as the start of a watch, and kubectl
/// does not list again by itself.
fn can_watch(testbed: &Testbed) -> Result<()> {
    let list = viewer::get(testbed, Route::Gateway, "/virtualclusters")?.expect(StatusCode::OK)?.json()?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let watch = format!("/virtualclusters?watch=true&timeoutSeconds=1&resourceVersion={version}");
    viewer::get(testbed, Route::Gateway, &watch)?.expect(StatusCode::OK).map(drop)
}

fn is_gone(testbed: &Testbed, name: &str) -> Result<()> {
    let answer = viewer::get(testbed, Route::Gateway, &format!("/virtualclusters/{name}"))?;
    answer.expect(StatusCode::NOT_FOUND).map(drop)
}

fn managed(testbed: &Testbed) -> Result<()> {
    is_gone(testbed, SPOKE)?;
    let kubectl = testbed.hub.server.kubectl();
    testbed.hub.apply(&[kind()])?;
    kubectl.ok(&format!("wait crd/{KIND} --for=condition=Established --timeout=60s"))?;
    let (url, authority) = (testbed.member.server.url(), testbed.member.server.authority().root_pem());
    let spoke = cluster(SPOKE, Some(&url), &authority, &json!({"region": "south"}));
    wait::until("the hub to serve the new kind", SEEN, || testbed.hub.apply(std::slice::from_ref(&spoke)))?;

    let object = wait::until("the managed cluster", FOUND, || virtual_cluster(testbed, SPOKE))?;
    let spec = json!({"accepted": true, "endpoint": "-", "credential-type": "ManagedCluster"});
    ensure!(object["spec"] == spec && object["metadata"]["labels"]["region"] == "south", "{object}");
    wait::until("a list that can be watched from", FOUND, || can_watch(testbed))?;
    let viewer_kubectl = viewer::kubectl(testbed, Route::Hub)?;
    let selector = format!("--field-selector=metadata.name={BOTH}");
    let words = format!("get vc {selector} -w --output-watch-events");
    let mut watch = viewer_kubectl.args(words.split(' ')).start()?;
    let listed = viewer_kubectl.ok("get vc -l region=south -o name")?;
    ensure!(listed.trim() == format!("virtualcluster.cluster.core.oam.dev/{SPOKE}"), "{listed}");

    // Without an address it is no cluster, and has no effect.
    testbed.hub.apply(&[cluster("managed-empty", None, "", &json!({}))])?;
    // A Secret of the same name takes precedence, whichever was created first; once it is deleted,
    // the `ManagedCluster` shows.
    testbed.hub.apply(&[cluster(BOTH, Some(&url), &authority, &json!({}))])?;
    wait::until("the second", SEEN, || virtual_cluster(testbed, BOTH))?;
    ensure!(watch.next_line(SEEN)?.starts_with("EVENT"), "no heading");
    event(&mut watch, "ADDED", "ManagedCluster")?;
    testbed.hub.register_member(BOTH, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    is_of(testbed, BOTH, "ServiceAccountToken")?;
    event(&mut watch, "MODIFIED", "ServiceAccountToken")?;
    // Changes of it do not reach watchers while there is the Secret.
    testbed.hub.server.label(&format!("managedcluster {BOTH} unseen=yes"))?;
    let list = viewer::get(testbed, Route::Gateway, "/virtualclusters")?.expect(StatusCode::OK)?.json()?;
    let names: Vec<&Value> =
        list["items"].as_array().into_iter().flatten().map(|item| &item["metadata"]["name"]).collect();
    ensure!(names.iter().filter(|name| **name == BOTH).count() == 1, "{names:?}");
    ensure!(names.iter().any(|name| *name == SPOKE) && !names.iter().any(|name| *name == "managed-empty"), "{names:?}");
    testbed.hub.forget_member(BOTH)?;
    is_of(testbed, BOTH, "ManagedCluster")?;
    event(&mut watch, "MODIFIED", "ManagedCluster")?;
    testbed.hub.server.delete(&format!("managedcluster {BOTH}"))?;
    event(&mut watch, "DELETED", "ManagedCluster")?; // so nothing else was told in between

    override_endpoint(testbed, &authority)?;
    testbed.hub.server.delete(&format!("crd {KIND}"))?;
    wait::until("the managed clusters to be forgotten", FOUND, || is_gone(testbed, SPOKE))?;
    virtual_cluster(testbed, "local").map(drop)
}

fn event(watch: &mut Running, change: &str, kind: &str) -> Result<()> {
    let line = watch.next_line(SEEN)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    ensure!(words[..2] == [change, BOTH] && words[2..].contains(&kind), "{line:?} instead of {change} as {kind}");
    Ok(())
}

fn is_of(testbed: &Testbed, name: &str, kind: &str) -> Result<()> {
    wait::until(&format!("{name} as {kind}"), SEEN, || {
        let object = virtual_cluster(testbed, name)?;
        ensure!(object["spec"]["credential-type"] == kind, "{object}");
        Ok(())
    })
}

/// With `--ocm-integration`, address and CA come from the `ManagedCluster` of the same name;
/// without, from the Secret.
fn override_endpoint(testbed: &Testbed, authority: &str) -> Result<()> {
    let nobody = format!("https://127.0.0.1:{}", hub_tests::ports::free()?);
    let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&nobody);
    testbed.hub.register_member(SPOKE, &secret)?;
    let kubeconfig = testbed.hub.server.kubectl().kubeconfig;
    let gateway = testbed.start_gateway("ocm", &kubeconfig, &["--ocm-integration"])?;
    let path = format!("{}/version", Testbed::proxy_path(SPOKE));
    let authorization = bearer(&testbed.token);
    let headers = [("authorization", &*authorization)];
    let ours = client(testbed, Route::Gateway);
    wait::until("the Secret at the gateway without the flag", SEEN, || {
        ours.get(&path, &headers)?.expect(StatusCode::SERVICE_UNAVAILABLE)
    })?;
    let ocm = gateway.client(None);
    wait::until("the managed address", FOUND, || ocm.get(&path, &headers)?.expect(StatusCode::OK))?;
    // Any address can be registered; it counts only while an administrator accepts the cluster.
    let secrets = || {
        wait::until("the Secret's address", SEEN, || ocm.get(&path, &headers)?.expect(StatusCode::SERVICE_UNAVAILABLE))
    };
    accept(testbed, false)?;
    secrets()?;
    accept(testbed, true)?;
    wait::until("the address that is accepted again", SEEN, || ocm.get(&path, &headers)?.expect(StatusCode::OK))?;
    // With an empty list, the Secret's own address counts again.
    testbed.hub.apply(&[cluster(SPOKE, None, authority, &json!({}))])?;
    secrets()?;
    testbed.hub.forget_member(SPOKE)
}

/// An administrator accepts or denies [`SPOKE`].
fn accept(testbed: &Testbed, accepted: bool) -> Result<()> {
    let patch = json!({"spec": {"hubAcceptsClient": accepted}}).to_string();
    let words = ["patch", "managedcluster", SPOKE, "--type=merge", "-p", &patch];
    testbed.hub.server.kubectl().args(words).run()?.success().map(drop)
}
