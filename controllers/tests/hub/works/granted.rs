//! A credential of the member with the rights that docs/security.md lists, and no others.

use anyhow::{Result, ensure};
use http::StatusCode;
use hub_tests::hub::MemberSecret;
use hub_tests::page::block;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Place, WORKS, config_map};
use crate::fixture::SOON;

const PAGE: &str = include_str!("../../../../docs/security.md");
const CLUSTER: &str = "works-granted";
const ACCOUNT: &str = "least";
const KINDS: [&str; 3] = ["deployment", "service", "configmap"];

pub fn least(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, CLUSTER)?;
    let token = place.member().service_account_token(CLUSTER, ACCOUNT)?;
    for rules in ["cluster-gateway-manifestworks", "cluster-gateway-web"] {
        let rules = block(PAGE, "yaml", rules)?.replace("namespace: web", &format!("namespace: {CLUSTER}"));
        place.member().apply_text(&rules)?;
    }
    place.member().bind("works-granted", "cluster-gateway-manifestworks", (CLUSTER, ACCOUNT))?;
    let group = "rbac.authorization.k8s.io";
    place.member().create(&[json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "granted", "namespace": CLUSTER},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "cluster-gateway-web"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CLUSTER}]})])?;
    testbed.hub.register_member(CLUSTER, &MemberSecret::with_token(&testbed.member.server, &token))?;
    let secrets = format!("{}/api/v1/namespaces/{CLUSTER}/secrets", Testbed::proxy_path(CLUSTER));
    let hub = testbed.hub.server.client(Some(testbed.hub.server.admin()));
    wait::until("the other credential", SOON, || {
        let read = hub.get(&secrets, &[])?;
        let is_refused = read.status == StatusCode::FORBIDDEN && read.text().contains("forbidden");
        ensure!(is_refused, "{}: {}", read.status, read.text());
        Ok(())
    })?;

    let mut manifests = manifests();
    place.work("least", &manifests, &json!({}))?;
    let all = KINDS.len();
    for ordinal in 0..all {
        place.wait_manifest("least", ordinal, "Applied", "True/AppliedManifestComplete")?;
    }
    let told = place.wait_manifest("least", all, "Applied", "False/AppliedManifestFailed")?;
    ensure!(told.contains("forbidden") && told.contains("secrets"), "{told}");
    // Changes are seen and repaired, objects that are no longer wanted are deleted.
    let by_hand = json!({"data": {"a": "by hand"}});
    place.member().patch(&format!("configmap web -n {CLUSTER}"), &by_hand)?;
    wait::until_true("the repair", SOON, || Ok(place.object("configmap", "web")?["data"]["a"] == "b"))?;
    manifests.truncate(1);
    place.work("least", &manifests, &json!({}))?;
    wait::until_true("the end of a Service", SOON, || Ok(place.object("service", "web")?.is_null()))?;
    place.wait_applied("least")?;
    place.delete(&format!("{WORKS} least -n {CLUSTER}"))?;
    ensure!(place.object("deployment", "web")?.is_null(), "it is left behind");
    refused_secrets_alone(testbed)?;
    place.member().delete("clusterrole cluster-gateway-manifestworks")?;
    place.member().delete("clusterrolebinding works-granted")?;
    place.end(&[])
}

/// One of each kind, all called `web`, and a Secret.
fn manifests() -> Vec<Value> {
    let labels = json!({"app": "web"});
    let metadata = json!({"name": "web", "namespace": CLUSTER});
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "none"}]}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 80}]}}),
        config_map(CLUSTER, "web", &json!({"a": "b"})),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}),
    ]
}

/// By the member's audit log, the credential was refused nothing else.
fn refused_secrets_alone(testbed: &Testbed) -> Result<()> {
    let entries = testbed.member.seen(&format!("system:serviceaccount:{CLUSTER}:{ACCOUNT}"))?;
    let refused = entries.iter().filter(|entry| entry["responseStatus"]["code"] == 403);
    let others: Vec<&Value> =
        refused.map(|entry| &entry["objectRef"]).filter(|object| object["resource"] != "secrets").collect();
    ensure!(entries.len() > KINDS.len() && others.is_empty(), "{others:?}");
    Ok(())
}
