//! Each right that the chart grants is used: a program that goes through everything uses it, by the
//! hub's audit log, or holds it in order to grant it to others.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::audit::Right;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{NAME, nothing_refused, rendered, started};
use crate::fixture::{
    SOON, apply, event, member_kubeconfig, namespace, profile_kind, secret_field, wait_gone, wait_secret,
};

/// The Lease of the controllers' leader election.
const LEASE: &str = "cluster-gateway-controllers";

/// Waits until the controllers of a namespace have used all rights that `objects` grant them since
/// `mark`, except those in `beside`. A right to list needs no use where the hub sends lists as
/// events of a watch: `sources` shows that it cannot be left out.
pub fn none_idle(
    testbed: &Testbed,
    place: &str,
    objects: &[Value],
    mark: usize,
    beside: &BTreeSet<Right>,
) -> Result<()> {
    let granted: BTreeSet<Right> = objects.iter().flat_map(granted).collect();
    ensure!(!granted.is_empty(), "nothing is granted");
    wait::until("that all rights are used", SOON, || {
        let used = testbed.audit.used((place, NAME), mark)?;
        let is_streamed =
            |list: &Right| list.verb == "list" && used.contains(&Right { verb: "watch".to_owned(), ..list.clone() });
        let is_idle = |right: &&Right| !used.contains(*right) && !beside.contains(*right) && !is_streamed(right);
        let idle: Vec<_> = granted.iter().filter(is_idle).collect();
        ensure!(idle.is_empty(), "granted in vain: {idle:?}");
        Ok(())
    })?;
    nothing_refused(testbed, place)
}

/// The right to write Events, which one rule grants for every part and source:
/// `sources::kubeconfig` shows that none of it can be left out.
pub fn events() -> BTreeSet<Right> {
    ["create", "patch"].map(|verb| right("events.k8s.io", "events", verb)).into()
}

pub fn right(group: &str, resource: &str, verb: &str) -> Right {
    Right { group: group.to_owned(), resource: resource.to_owned(), verb: verb.to_owned() }
}

/// The rights that a role grants; none if it is no role.
pub fn granted(role: &Value) -> Vec<Right> {
    let mut all = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let list = |field: &str| -> Vec<String> {
            let words = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        };
        // A single replica leads and has no other leader to watch: `sources::kubeconfig` runs two.
        let is_of_standby = |verb: &String| verb == "watch" && list("resourceNames") == [LEASE];
        for group in list("apiGroups") {
            for resource in list("resources") {
                let right = |verb| Right { group: group.clone(), resource: resource.clone(), verb };
                all.extend(list("verbs").into_iter().filter(|verb| !is_of_standby(verb)).map(right));
            }
        }
    }
    all
}

/// The program's rights for the source, through the life of one profile.
pub fn import(testbed: &Testbed) -> Result<()> {
    let (place, fleet) = ("audited-import", "audited-import-fleet");
    profile_kind(testbed)?;
    apply(testbed, &[namespace(place), namespace(fleet)])?;
    let providers = testbed.launcher().file("import-providers.json");
    let provider = json!({"name": "cloud", "execConfig": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/plugins/cloud", "interactiveMode": "Never"}});
    std::fs::write(&providers, json!({"providers": [provider]}).to_string())?;
    let values = "controllers.sources.clusterProfileImport=true,controllers.clusterProfileProviders[0].name=cloud,\
                  controllers.execCommands={/plugins/cloud},controllers.watchNamespaces={audited-import-fleet}";
    let mut objects = rendered(testbed, place, values)?;
    // The pod's mounted file is elsewhere here.
    let deployment = objects.iter_mut().find(|object| object["kind"] == "Deployment").context("a Deployment")?;
    for argument in deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array_mut().context("args")? {
        if argument.as_str().is_some_and(|text| text.starts_with("--clusterprofile-import-providers-file=")) {
            *argument = format!("--clusterprofile-import-providers-file={}", providers.display()).into();
        }
    }
    let mark = testbed.audit.mark()?;
    let _running = started(testbed, place, &objects)?;
    let authority = STANDARD.encode(std::fs::read(testbed.member.server.authority_file())?);
    let publish = |name: &str, url: &str| -> Result<()> {
        let mut profile = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": fleet}, "spec": {"clusterManager": {"name": "cloud"}},
        });
        apply(testbed, std::slice::from_ref(&profile))?;
        profile["status"] = json!({"accessProviders": [{"name": "cloud", "cluster": {
            "server": url, "certificate-authority-data": authority}}]});
        testbed.hub.server.apply_status(&profile)
    };
    publish("used", &testbed.member.server.url())?;
    wait_secret(testbed, place, "used")?;
    publish("used", "https://10.9.8.7")?;
    wait::until_true("the new address", SOON, || {
        Ok(secret_field(testbed, place, "used", "/data/endpoint")? == STANDARD.encode("https://10.9.8.7"))
    })?;
    // The Event of the first refusal of an object is updated by the second.
    publish("broken", "http://10.9.8.7")?;
    wait::until("an Event", SOON, || event(testbed, fleet, "broken", "ClusterRefused"))?;
    publish("broken", "https://169.254.169.254")?;
    testbed.hub.server.delete(&format!("clusterprofile used -n {fleet}"))?;
    wait_gone(testbed, place, "used")?;
    none_idle(testbed, place, &objects, mark, &BTreeSet::new())
}

/// Seven Secrets of a cluster have its label; only one of them is its kubeconfig.
pub fn cluster_api(testbed: &Testbed) -> Result<()> {
    const CLUSTER: &str = "guarded";
    let (place, fleet) = ("audited-capi", "audited-capi-fleet");
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": CLUSTER, "namespace": fleet},
        "spec": {"controlPlaneEndpoint": {"host": "10.9.8.7", "port": 6443}}});
    apply(testbed, &[namespace(place), namespace(fleet), cluster])?;
    let line = format!("clusters.cluster.x-k8s.io {CLUSTER} -n {fleet}");
    let uid = testbed.hub.server.read(&line)?["metadata"]["uid"].clone();
    let secret = |of: &str, token: &str| {
        let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": CLUSTER, "uid": uid});
        json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": format!("{CLUSTER}-{of}"), "namespace": fleet, "ownerReferences": [owner],
                "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER}},
            "stringData": {"value": member_kubeconfig(testbed, token)}})
    };
    let all = |token: &str| -> Result<()> {
        // The kubeconfig last: once it has been read, the others could have been, too.
        let names = ["ca", "etcd", "sa", "proxy", "apiserver-etcd-client", "user-kubeconfig", "kubeconfig"];
        apply(testbed, &names.map(|of| secret(of, token)))
    };
    all("first")?;
    let values = "controllers.sources.capi=true,controllers.watchNamespaces={audited-capi-fleet}";
    let mark = testbed.audit.mark()?;
    let mut running = started(testbed, place, &rendered(testbed, place, values)?)?;
    wait_secret(testbed, place, CLUSTER)?;
    let token = |token: &str| {
        wait::until_true("the token", SOON, || {
            Ok(secret_field(testbed, place, CLUSTER, "/data/token")? == STANDARD.encode(token))
        })
    };
    all("second")?;
    token("second")?;
    // Nor are the others read after a restart, when all of them come as events.
    running.restart()?;
    all("third")?;
    token("third")?;
    let used = testbed.audit.used((place, NAME), mark)?;
    let of_secrets = |verb| right("", "secrets", verb);
    ensure!(used.contains(&of_secrets("watch")) && !used.contains(&of_secrets("list")), "the Secrets were listed");
    let read = testbed.audit.read_by_name((place, NAME), (fleet, "secrets"), mark)?;
    ensure!(read == BTreeSet::from([format!("{CLUSTER}-kubeconfig")]), "{read:?}");
    testbed.hub.server.delete(&line)
}
