//! Upstream's own agent: a cluster moves from it to our part and back, without a change on the
//! member.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use serde_json::{Value, json};

use super::{APPLIED, Place, WORKS, condition, config_map, hash_of, said, strategy};
use crate::fixture::{SOON, definition, event};

const CLUSTER: &str = "works-agent";
/// The namespace of the work's objects on the member, which the work itself creates.
const OWN: &str = "works-agent-own";
const LABEL: &str = "handed-over";
/// The agent takes a moment to start, and retries failures after some seconds.
const AGENT: Duration = Duration::from_mins(1);
/// The kinds with objects that have the label on the member.
const KINDS: &str = "namespaces,customresourcedefinitions,clusterroles.rbac.authorization.k8s.io,serviceaccounts,secrets,\
                     configmaps,services,deployments,handovers.works.example";
const WORKS_HERE: [&str; 2] = ["many", "left"];
const OBJECTS: f64 = 12.0;
/// The object that changes with the work.
const SETTINGS: &str = "ConfigMap/settings";

pub fn handed_over(testbed: &Testbed) -> Result<()> {
    let place =
        Place::with(testbed, CLUSTER, &format!(",controllers.manifestworks.hubURL={}", testbed.hub.server.url()))?;
    place.deliver(None)?;
    let mut agent = start(testbed)?;
    for work in WORKS_HERE {
        put(&place, work, "1")?;
    }
    wait::until("the agent to apply them", AGENT, || WORKS_HERE.iter().try_for_each(|work| settled(&place, work)))
        .with_context(|| agent.log_tail())?;
    let (theirs, before, told) = (keeper(&place, "many")?, versions(&place)?, words(&place, "many")?);

    // Delivery is turned on while the agent runs: the part leaves the work alone.
    place.deliver(Some("push"))?;
    let note = wait::until("an Event", SOON, || event(testbed, CLUSTER, "many", "ForeignAgent"))?;
    ensure!(note.contains(&theirs) && note.contains("adopt"), "{note}");
    unchanged(&before, &versions(&place)?, &[])?;

    // Once the agent has stopped, what it applied becomes ours without a change, and so do the
    // statuses.
    agent.stop()?;
    place.deliver(Some("adopt"))?;
    wait_keeper(&place, |keeper| keeper.starts_with("cluster-gateway"))?;
    let applied = || place.running.metric("cluster_gateway_delivery_objects", "applied");
    wait::until_true("all to count", 2 * SOON, || Ok((applied()? - OBJECTS).abs() < 0.1))?;
    unchanged(&before, &versions(&place)?, &[])?;
    place.deliver(Some("push"))?;
    put(&place, "many", "2")?;
    wait::until("the change", SOON, || settled(&place, "many"))?;
    unchanged(&before, &versions(&place)?, &[SETTINGS, "ManifestWork/many"])?;
    ensure!(words(&place, "many")? == told, "the agent said {told}, we say {}", words(&place, "many")?);

    // And back to the agent.
    let before = versions(&place)?;
    place.deliver(None)?;
    agent.start_again()?;
    wait_keeper(&place, |keeper| keeper == theirs).with_context(|| agent.log_tail())?;
    put(&place, "many", "3")?;
    wait::until("the change", AGENT, || settled(&place, "many")).with_context(|| agent.log_tail())?;
    unchanged(&before, &versions(&place)?, &[SETTINGS, "ManifestWork/many"])?;
    ensure!(words(&place, "many")? == told, "we said {told}, the agent says {}", words(&place, "many")?);

    // The agent deletes what our part listed.
    place.delete(&format!("{WORKS} --all -n {CLUSTER} --wait=false"))?;
    for work in WORKS_HERE {
        wait::until_true("the end of a work", AGENT, || Ok(place.read(work)?.is_null()))
            .with_context(|| agent.log_tail())?;
        ensure!(list(&place, work)?.is_null(), "what was applied is still listed");
    }
    ensure!(place.object("configmap", "stays")?.is_object(), "what is left behind is gone");
    agent.stop()?;
    place.end(&[])
}

/// The agent as its pod runs it; it reports status every second or two.
fn start(testbed: &Testbed) -> Result<Process> {
    // Unless the definition exists, as with the klusterlet's operator.
    let definition = tools::kinds("open-cluster-management.io/api", &["work/v1/0000_01"])?;
    if testbed.member.server.read(&format!("crd {APPLIED}"))?.is_null() {
        testbed.member.server.apply_text(&definition)?;
    }
    let arguments = [
        "agent".to_owned(),
        format!("--kubeconfig={}", testbed.member.server.kubectl().kubeconfig.display()),
        format!("--spoke-cluster-name={CLUSTER}"),
        // In the form of a klusterlet's UID.
        "--agent-id=1f2e3d4c-0000-4000-8000-000000000001".to_owned(),
        format!("--workload-source-config={}", testbed.hub.server.kubectl().kubeconfig.display()),
        format!("--listen=127.0.0.1:{}", ports::free()?),
        "--namespace=default".to_owned(),
        "--status-sync-interval=1s".to_owned(),
        "--disable-leader-election".to_owned(),
    ];
    Process::start("ocm-work", &tools::provide(Tool::OcmWork)?, arguments, &testbed.directory("ocm-work")?)
}

/// Puts one of two works: one with everything that the strategies treat differently, and one whose
/// object is left behind.
fn put(place: &Place<'_>, work: &str, version: &str) -> Result<()> {
    let labelled = |mut object: Value| {
        object["metadata"]["labels"] = json!({LABEL: "yes"});
        object
    };
    if work == "left" {
        let orphan = json!({"deleteOption": {"propagationPolicy": "Orphan"}});
        return place.work(work, &[labelled(config_map(CLUSTER, "stays", &json!({"a": "b"})))], &orphan);
    }
    let web = json!({"resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": OWN, "name": "web"},
        "feedbackRules": [{"type": "WellKnownStatus"}]});
    let mut checked = strategy(OWN, "once", &json!({"type": "CreateOnly"}));
    checked["conditionRules"] = json!([{"type": "CEL", "condition": "Checked",
        "celExpressions": ["object.data.a == 'b'"], "message": "it is as it was"}]);
    let server = json!({"type": "ServerSideApply", "serverSideApply": {"force": true,
        "ignoreFields": [{"condition": "OnSpokeChange", "jsonPaths": [".data.ignored"]}]}});
    let configs = json!({"manifestConfigs": [web, checked, strategy(OWN, "server", &server)]});
    place.work(work, &objects(version).map(labelled), &configs)
}

fn objects(version: &str) -> [Value; 11] {
    let pods = json!({"app": "web"});
    let of = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": OWN}});
    let mut deployment = of("Deployment", "web");
    deployment["apiVersion"] = json!("apps/v1");
    deployment["spec"] = json!({"replicas": 1, "selector": {"matchLabels": pods}, "template": {
        "metadata": {"labels": pods}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}});
    let mut service = of("Service", "web");
    service["spec"] = json!({"selector": pods, "ports": [{"port": 80}]});
    let mut secret = of("Secret", "secret");
    secret["stringData"] = json!({"a": "b"});
    let mut custom = of("Handover", "custom");
    (custom["apiVersion"], custom["size"]) = (json!("works.example/v1"), json!(3));
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "works-agent-role"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN}}),
        definition("works.example", "Handover", "v1", "Namespaced"),
        role,
        of("ServiceAccount", "account"),
        secret,
        config_map(OWN, "settings", &json!({"version": version})),
        config_map(OWN, "once", &json!({"a": "b"})),
        config_map(OWN, "server", &json!({"a": "b", "ignored": "c"})),
        service,
        deployment,
        custom,
    ]
}

/// Checks that the current generation of a work is applied and reported.
fn settled(place: &Place<'_>, name: &str) -> Result<()> {
    let work = place.read(name)?;
    let status = &work["status"];
    for kind in ["Applied", "Available"] {
        let found = condition(status, kind);
        ensure!(found["status"] == "True", "{status}");
        ensure!(found["observedGeneration"] == work["metadata"]["generation"], "another generation: {status}");
    }
    let manifests = status["resourceStatus"]["manifests"].as_array().map_or(0, Vec::len);
    let all = work["spec"]["workload"]["manifests"].as_array().map_or(0, Vec::len);
    ensure!(manifests == all, "{status}");
    if name == "many" {
        ensure!(place.values(name, 9)?["ReadyReplicas"] == 1, "{status}");
        ensure!(said(condition(status, "Checked")).starts_with("True"), "{status}");
    }
    Ok(())
}

/// A status without its times and generations.
fn words(place: &Place<'_>, name: &str) -> Result<Value> {
    let mut status = place.read(name)?["status"].take();
    let strip = |conditions: &mut Value| {
        let all = conditions.as_array_mut().context("conditions")?;
        for one in all.iter_mut().filter_map(Value::as_object_mut) {
            one.retain(|field, _| !["lastTransitionTime", "observedGeneration"].contains(&field.as_str()));
        }
        all.sort_by_key(|one| one["type"].to_string());
        Ok::<_, anyhow::Error>(())
    };
    strip(&mut status["conditions"])?;
    for manifest in status["resourceStatus"]["manifests"].as_array_mut().into_iter().flatten() {
        strip(&mut manifest["conditions"])?;
    }
    Ok(status)
}

/// The `AppliedManifestWork` of a work, which lists its objects on the member.
fn list(place: &Place<'_>, work: &str) -> Result<Value> {
    let name = format!("{}-{work}", hash_of(&place.testbed.hub.server.url()));
    place.member().read(&format!("{APPLIED} {name}"))
}

/// The agent that applies a work.
fn keeper(place: &Place<'_>, work: &str) -> Result<String> {
    let list = list(place, work)?;
    list["spec"]["agentID"].as_str().map(str::to_owned).with_context(|| format!("nobody in {list}"))
}

fn wait_keeper(place: &Place<'_>, is_it: impl Fn(&str) -> bool) -> Result<()> {
    for work in WORKS_HERE {
        wait::until(&format!("another to apply {work}"), AGENT, || {
            let keeper = keeper(place, work)?;
            ensure!(is_it(&keeper), "it is {keeper}'s");
            Ok(())
        })?;
    }
    Ok(())
}

/// UID and version of each object, and of each work.
fn versions(place: &Place<'_>) -> Result<BTreeMap<String, [String; 2]>> {
    let objects = place.member().read(&format!("{KINDS} -A -l {LABEL}=yes"))?;
    let works = place.testbed.hub.server.read(&format!("{WORKS} -n {CLUSTER}"))?;
    let all = [objects, works].into_iter().flat_map(|list| list["items"].as_array().cloned().unwrap_or_default());
    let of = |object: Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let kind = object["kind"].as_str().unwrap_or_default();
        (format!("{kind}/{}", text("name")), [text("uid"), text("resourceVersion")])
    };
    Ok(all.map(of).collect())
}

/// Checks that nothing was recreated, and that only what `written` names was written.
fn unchanged(
    before: &BTreeMap<String, [String; 2]>,
    after: &BTreeMap<String, [String; 2]>,
    written: &[&str],
) -> Result<()> {
    ensure!(before.len() >= 14 && before.len() == after.len(), "{before:?} became {after:?}");
    for (name, [uid, version]) in before {
        let now = after.get(name).with_context(|| format!("{name} is gone"))?;
        ensure!(now[0] == *uid, "{name} was made anew");
        ensure!(now[1] == *version || written.contains(&name.as_str()), "{name} was written");
    }
    Ok(())
}
