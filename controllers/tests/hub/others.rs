//! Fleets of other systems move in, with objects as their own commands write them.

mod elsewhere;
mod joined;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use hub_tests::testbed::Testbed;
use hub_tests::tunnel::{AgentCredential, AgentOptions};
use hub_tests::wait;
use kit::pki::Authority;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;
use tunnel_agent::Agent;

use crate::fixture::{
    Fixture, Running, SOON, apply, definition, namespace, print, profile_kind, secret_field, test, wait_gone,
    wait_secret,
};
use crate::registration;
use crate::rights::{installed, nothing_refused};

/// From a rotation of the Secret that an object refers to, to the write of the cluster's.
pub const FOLLOWED: Duration = Duration::from_secs(1);
/// Nothing listens at this address.
const DEAD: &str = "https://127.0.0.1:1";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "others: Karmada's clusters, Push and Pull", karmada),
        test(fixture, "others: Karmada's control plane that is not the hub", elsewhere::moves_in_and_out),
        test(fixture, "others: a cluster that karmadactl joins to a control plane elsewhere", joined::joins_and_leaves),
        test(fixture, "others: Open Cluster Management's clusters, once they are accepted", ocm),
        test(fixture, "others: another manager's ClusterProfiles", profiles),
    ]
}

/// A key of a cluster's Secret.
pub fn value(testbed: &Testbed, namespace: &str, name: &str, key: &str) -> Result<String> {
    let path = format!("/data/{key}");
    Ok(String::from_utf8(STANDARD.decode(secret_field(testbed, namespace, name, &path)?)?)?)
}

fn authority(testbed: &Testbed) -> Result<String> {
    Ok(std::fs::read_to_string(testbed.member.server.authority_file())?)
}

fn establish(testbed: &Testbed, kind: &Value) -> Result<()> {
    apply(testbed, std::slice::from_ref(kind))
}

/// Checks that the gateway reaches the member with the Secret's data. It copies the Secret as a
/// person's, since the testbed's gateway reads another namespace than these controllers write.
pub fn is_reachable(testbed: &Testbed, namespace: &str, name: &str) -> Result<()> {
    let hub = &testbed.hub.server;
    let secret = hub.read(&format!("secret {name} -n {namespace}"))?;
    let mut labels = secret["metadata"]["labels"].clone();
    labels.as_object_mut().and_then(|labels| labels.remove("cluster.core.oam.dev/source"));
    let copy = format!("{namespace}-{name}");
    let object = json!({"apiVersion": "v1", "kind": "Secret", "data": secret["data"], "type": secret["type"],
        "metadata": {"name": copy, "namespace": "vela-system", "labels": labels}});
    apply(testbed, &[object])?;
    let path = format!("{}/version", Testbed::proxy_path(&copy));
    wait::until("an answer of the member", SOON, || {
        hub.client(Some(hub.admin())).get(&path, &[])?.expect(StatusCode::OK)
    })?;
    testbed.hub.server.delete(&format!("secret {copy} -n vela-system"))
}

fn karmada(testbed: &Testbed) -> Result<()> {
    registration::ports_are_left();
    establish(testbed, &definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster"))?;
    let authority = authority(testbed)?;
    let secret = |token: &str, bundle: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "pushed", "namespace": "karmada-cluster", "labels": {"karmada.io/system": "true"}},
            "stringData": {"caBundle": bundle, "token": token},
        })
    };
    let pushed = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "pushed"},
        "spec": {"syncMode": "Push", "apiEndpoint": testbed.member.server.url(), "region": "north",
            "secretRef": {"namespace": "karmada-cluster", "name": "pushed"},
            "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "pushed-impersonator"}},
    });
    let pulled = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "pulled"},
        "spec": {"syncMode": "Pull", "secretRef": {"namespace": "karmada-cluster", "name": "pushed"}},
    });
    apply(testbed, &[namespace("karmada-cluster"), secret("first", &authority)])?;
    let controllers = Running::start(testbed, "karmada-clusters", &["--enable=karmada"])?;
    let clusters = controllers.namespace.as_str();
    apply(testbed, &[pushed, pulled])?;
    wait_secret(testbed, clusters, "pushed")?;
    ensure!(value(testbed, clusters, "pushed", "endpoint")? == testbed.member.server.url());
    ensure!(value(testbed, clusters, "pushed", "token")? == "first");
    wait_secret(testbed, clusters, "pulled")?;
    let way = "/metadata/labels/cluster.core.oam.dev~1cluster-endpoint-type";
    ensure!(
        secret_field(testbed, clusters, "pulled", way)? == "ClusterProxy",
        "a cluster without an address has no tunnel"
    );
    follows(testbed, (clusters, "pushed"), &authority, secret)?;
    let second = testbed.member.create_admin("karmada-pushed")?;
    rotation(testbed, &secret(&second, &authority), (clusters, "pushed"), ("token", &second))?;
    is_reachable(testbed, clusters, "pushed")?;
    let agent = agent(testbed, &format!("{clusters}-pulled"))?;
    is_reachable(testbed, clusters, "pulled")?;
    agent.stop()?;
    // The clusters are removed with their objects.
    testbed.hub.server.delete("clusters.cluster.karmada.io pulled")?;
    wait_gone(testbed, clusters, "pulled")?;
    testbed.hub.server.delete("clusters.cluster.karmada.io pushed")?;
    wait_gone(testbed, clusters, "pushed")
}

/// A rotated token counts within a second, and so does a rotated CA.
fn follows(
    testbed: &Testbed,
    cluster: (&str, &str),
    authority: &str,
    secret: impl Fn(&str, &str) -> Value,
) -> Result<()> {
    let (mut numbers, mut token) = (0.., String::new());
    let mut next = || numbers.next().expect("there are endless");
    wait::timely("from a rotated token of Karmada's to its write", FOLLOWED, || {
        token = format!("rotated-{}", next());
        rotation(testbed, &secret(&token, authority), cluster, ("token", &token))
    })?;
    wait::timely("from a rotated CA of Karmada's to its write", FOLLOWED, || {
        let another = Authority::new(&format!("karmada-{}", next())).root_pem();
        let bundle = format!("{authority}{another}");
        rotation(testbed, &secret(&token, &bundle), cluster, ("ca.crt", &bundle))
    })
}

/// Rotates the Secret that an object refers to. Returns the time until the cluster's Secret, in its
/// namespace, has the key's new value.
pub fn rotation(
    testbed: &Testbed,
    secret: &Value,
    (namespace, name): (&str, &str),
    (key, expected): (&str, &str),
) -> Result<Duration> {
    apply(testbed, std::slice::from_ref(secret))?;
    let rotated = Instant::now();
    wait::until_true(&format!("the new {key} of {name}"), SOON, || {
        Ok(value(testbed, namespace, name, key)? == expected)
    })?;
    let took = rotated.elapsed();
    print(&format!("the new {key} of {name} was written after {took:?}"));
    Ok(took)
}

/// An agent of a cluster that is reached only by the tunnel.
fn agent(testbed: &Testbed, cluster: &str) -> Result<Agent> {
    let tunnelled = testbed.tunnelled()?;
    let token = testbed.hub.create_agent(cluster, &[cluster])?;
    let credential = AgentCredential::token(testbed.launcher(), cluster, &token)?;
    let (authority, server) = (testbed.tunnel.serving_authority_file(), testbed.member.server.address());
    AgentOptions::new(cluster, tunnelled.agent_address, authority, server, credential).start()
}

fn ocm(testbed: &Testbed) -> Result<()> {
    let url = &*testbed.member.server.url();
    let managed = |accepted: bool| managed_at(testbed, accepted, &[url], 1);
    let token = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "cluster-gateway", "namespace": "managed",
            "labels": {"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"}},
        "stringData": {"ca.crt": authority(testbed)?, "token": testbed.member.create_admin("ocm-managed")?},
    });
    let controllers = installed(testbed, "ocm-clusters", "controllers.sources.ocm=true")?;
    let clusters = controllers.namespace.as_str();
    apply(testbed, &[namespace("managed"), managed(false)?, token])?;
    wait::until_true("that it waits", SOON, || {
        Ok(controllers.wait_state("ManagedCluster//managed", "waiting")?.contains("hubAcceptsClient"))
    })?;
    apply(testbed, &[managed(true)?])?;
    wait_secret(testbed, clusters, "managed")?;
    ensure!(value(testbed, clusters, "managed", "endpoint")? == url);
    is_reachable(testbed, clusters, "managed")?;
    // Nothing listens at the first address.
    apply(testbed, &[managed_at(testbed, true, &[DEAD, url], 1)?])?;
    wait::until_true("the new address", SOON, || Ok(value(testbed, clusters, "managed", "endpoint")? == DEAD))?;
    is_reachable(testbed, clusters, "managed")?;
    // A cluster that becomes too large keeps its Secret, but not if it is denied.
    let many = (64 << 10) / authority(testbed)?.len() + 1;
    apply(testbed, &[managed_at(testbed, true, &[url], many)?])?;
    let told = controllers.wait_state("ManagedCluster//managed", "refused")?;
    ensure!(told.contains("KiB") && value(testbed, clusters, "managed", "endpoint")? == DEAD, "{told}");
    apply(testbed, &[managed_at(testbed, false, &[url], many)?])?;
    wait_gone(testbed, clusters, "managed")?;
    apply(testbed, &[managed(true)?])?;
    wait_secret(testbed, clusters, "managed")?;
    // Denial removes the cluster.
    apply(testbed, &[managed(false)?])?;
    wait_gone(testbed, clusters, "managed")?;
    apply(testbed, &[managed(true)?])?;
    wait_secret(testbed, clusters, "managed")?;
    nothing_refused(testbed, clusters)
}

/// The cluster with `copies` copies of the CA in each bundle.
fn managed_at(testbed: &Testbed, accepted: bool, urls: &[&str], copies: usize) -> Result<Value> {
    let bundle = STANDARD.encode(authority(testbed)?.repeat(copies));
    let configs: Vec<Value> = urls.iter().map(|url| json!({"url": url, "caBundle": bundle})).collect();
    Ok(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "managed"},
        "spec": {"hubAcceptsClient": accepted, "managedClusterClientConfigs": configs},
    }))
}

fn profiles(testbed: &Testbed) -> Result<()> {
    profile_kind(testbed)?;
    let providers = testbed.launcher().file("providers.json");
    let file = json!({"providers": [{"name": "cloud", "execConfig": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/plugins/cloud", "interactiveMode": "Never"}}]});
    std::fs::write(&providers, file.to_string())?;
    let providers = format!("--clusterprofile-import-providers-file={}", providers.display());
    let flags = ["--enable=clusterprofile-import", &providers, "--exec-commands=/plugins/cloud"];
    let controllers = Running::start(testbed, "profile-clusters", &flags)?;
    let profile = |name: &str, manager: &str, url: &str| -> Result<Value> {
        Ok(json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": "profiles"},
            "spec": {"clusterManager": {"name": manager}},
            "status": {"accessProviders": [{"name": "cloud", "cluster": {
                "server": url, "certificate-authority-data": STANDARD.encode(authority(testbed)?)}}]},
        }))
    };
    let url = testbed.member.server.url();
    let loops = format!("{}{}", testbed.hub.server.url(), Testbed::proxy_path("other"));
    let all = [
        profile("cloudy", "cloud", &url)?,
        profile("own", "cluster-gateway", &url)?,
        profile("loops", "cloud", &loops)?,
    ];
    apply(testbed, &[namespace("profiles")])?;
    apply(testbed, &all)?;
    for profile in all {
        testbed.hub.server.apply_status(&profile)?;
    }
    wait_secret(testbed, &controllers.namespace, "cloudy")?;
    let kind = "/metadata/labels/cluster.core.oam.dev~1cluster-credential-type";
    ensure!(secret_field(testbed, &controllers.namespace, "cloudy", kind)? == "Dynamic");
    controllers.wait_state("profiles/loops", "refused")?;
    ensure!(controllers.report("profiles/own").is_err(), "a profile of our own is read");
    Ok(())
}
