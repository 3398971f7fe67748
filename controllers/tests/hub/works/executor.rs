//! Without the right of a work's executor, nothing is done for it.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Place, condition, config_map, said, strategy};
use crate::fixture::SOON;

/// Until what was refused is asked for again, and what follows.
const GRANTED: Duration = Duration::from_secs(65);

pub fn reviewed(testbed: &Testbed) -> Result<()> {
    let cluster = "works-executor";
    let place = Place::start(testbed, cluster)?;
    let account = json!({"name": "deployer", "namespace": cluster});
    place.member().create(&[json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})])?;
    grant(
        testbed,
        cluster,
        "deployer",
        &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
            "verbs": ["create", "update", "patch", "get", "delete"]}]),
    )?;
    let executor = json!({"executor": {"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": cluster, "name": "deployer"}}}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": cluster}});
    let role = |name: &str, resource: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": name, "namespace": cluster},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]})
    };
    let manifests = [
        config_map(cluster, "may", &json!({"a": "b"})),
        secret.clone(),
        role("has", "configmaps"),
        role("more", "secrets"),
    ];
    place.work("limited", &manifests, &executor)?;
    place.wait("limited", "Applied", "False/AppliedManifestWorkFailed")?;
    place.wait_manifest("limited", 0, "Applied", "True/AppliedManifestComplete")?;
    place.wait_manifest("limited", 2, "Applied", "True/AppliedManifestComplete")?;
    let told = place.wait_manifest("limited", 1, "Applied", "False/AppliedManifestFailed")?;
    let refused = format!(
        "Failed to apply manifest: not allowed to apply the resource  secrets, {cluster} s: \
         system:serviceaccount:{cluster}:deployer may not create it"
    );
    ensure!(told == refused, "{told}");
    let told = place.wait_manifest("limited", 3, "Applied", "False/AppliedManifestFailed")?;
    let refused = format!(
        "not allowed to apply the resource rbac.authorization.k8s.io roles, {cluster} more, error: permission escalation"
    );
    ensure!(told.contains(&refused), "{told}");
    ensure!(place.object("secret", "s")?.is_null() && place.object("role", "more")?.is_null());
    ensure!(!place.object("role", "has")?.is_null());
    // An object that is only read is not read for an executor without the right to read it.
    let read = json!({"resourceIdentifier": {"group": "", "resource": "secrets", "namespace": cluster, "name": "*"},
        "updateStrategy": {"type": "ReadOnly"}, "feedbackRules": [{"type": "WellKnownStatus"}]});
    let mut reading = executor.clone();
    reading["manifestConfigs"] = json!([read, strategy(cluster, "may", &json!({"type": "Update"}))]);
    place.work("reading", &manifests[1..2], &reading)?;
    place.wait_manifest("reading", 0, "Applied", "False/AppliedManifestFailed")?;
    // The role that it binds comes with the same work.
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "other", "namespace": cluster},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "other"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": cluster}]});
    right_comes_later(testbed, &place, cluster, [secret, binding, role("other", "secrets")], &executor)?;
    place.end(&["limited", "reading", "granted"])
}

/// With the right, a new work is applied at once, and what was refused by itself within a minute.
fn right_comes_later(
    testbed: &Testbed,
    place: &Place<'_>,
    cluster: &str,
    [mut other, binding, role]: [Value; 3],
    executor: &Value,
) -> Result<()> {
    grant(testbed, cluster, "later", &json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]))?;
    let (user, what) = (
        format!("system:serviceaccount:{cluster}:deployer"),
        json!({"verb": "create", "resource": "secrets", "namespace": cluster}),
    );
    wait::until_true("the right", SOON, || place.member().may_user(&user, &[], &what))?;
    let granted = Instant::now();
    other["metadata"]["name"] = "other".into();
    place.work("granted", &[other, binding, role], executor)?;
    place.wait_applied("granted")?;
    for kind in ["secret", "role", "rolebinding"] {
        ensure!(!place.object(kind, "other")?.is_null(), "{kind}");
    }
    wait::until("what was refused to be applied", GRANTED.saturating_sub(granted.elapsed()), || {
        let limited = place.read("limited")?;
        let applied = condition(&limited["status"], "Applied");
        ensure!(said(applied) == "True/AppliedManifestWorkComplete", "{applied}");
        Ok(())
    })?;
    ensure!(!place.object("secret", "s")?.is_null() && !place.object("role", "more")?.is_null());
    Ok(())
}

pub fn required(testbed: &Testbed) -> Result<()> {
    let cluster = "works-required";
    let place = Place::with(testbed, cluster, ",controllers.manifestworks.requireExecutor=true")?;
    let map = config_map(cluster, "unsigned", &json!({"a": "b"}));
    place.work("unsigned", &[map], &json!({}))?;
    let told = place.wait("unsigned", "Applied", "False/AppliedManifestWorkFailed")?;
    ensure!(told.contains("executor is required"), "{told}");
    ensure!(place.object("configmap", "unsigned")?.is_null(), "it was applied with the cluster's own rights");
    place.end(&["unsigned"])
}

fn grant(testbed: &Testbed, cluster: &str, name: &str, rules: &Value) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": name, "namespace": cluster});
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": cluster}]});
    testbed.member.server.apply(&[role, binding])
}
