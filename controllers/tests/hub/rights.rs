//! The chart grants each source the rights that it needs, and no others.

mod sources;
pub mod used;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::{Chart, Helm};
use hub_tests::testbed::Testbed;
use hub_tests::trouble::Trouble;
use hub_tests::wait;
use kit::lines;
use libtest_mimic::Trial;
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::used::{events, none_idle};
use crate::fixture::{
    Fixture, Running, SOON, apply, definition, event, kubeconfig_secret, member_kubeconfig, namespace, profile_kind,
    test, wait_end, wait_gone, wait_secret,
};

pub const NAME: &str = "door-cluster-gateway-controllers";
/// Placeholder for the namespace, in which alone most renderings differ.
const ANYWHERE: &str = "namespace-of-a-test";

/// Renderings for [`ANYWHERE`], by values.
static RENDERED: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "rights: each source with what the chart grants it", each),
        test(fixture, "rights: one without a right says which, and registers nothing", less),
        test(fixture, "rights: none of kubeconfig Secrets can be left out", sources::kubeconfig),
        test(fixture, "rights: none of Cluster API can be left out", sources::cluster_api),
        test(fixture, "rights: none of Karmada can be left out", sources::karmada),
        test(fixture, "rights: none of KubeFed can be left out", sources::kubefed),
        test(fixture, "rights: none of Open Cluster Management can be left out", sources::ocm),
        test(fixture, "rights: none of ClusterProfile import stands idle", used::import),
        test(fixture, "rights: of Cluster API's Secrets, the kubeconfig alone is read", used::cluster_api),
        test(fixture, "rights: ClusterProfiles with what the chart grants, of which nothing stands idle", profiles),
    ]
}

/// The controllers' objects of the chart, rendered for a namespace.
pub fn rendered(testbed: &Testbed, place: &str, values: &str) -> Result<Vec<Value>> {
    let known = RENDERED.lock().get(values).cloned();
    let anywhere = if let Some(known) = known {
        known
    } else {
        let new = serde_json::to_string(&rendered_anew(testbed, ANYWHERE, values)?)?;
        RENDERED.lock().entry(values.to_owned()).or_insert(new).clone()
    };
    Ok(serde_json::from_str(&anywhere.replace(ANYWHERE, place))?)
}

fn rendered_anew(testbed: &Testbed, place: &str, values: &str) -> Result<Vec<Value>> {
    let directory = testbed.directory("controllers-helm")?;
    let helm = Helm::prepare(&directory, &testbed.hub.server.kubectl().kubeconfig)?.with(Chart::Gateway);
    let mut objects = helm.template("door", place, &[format!("--set=controllers.enabled=true,{values}")])?;
    objects.retain(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        name.contains(NAME) || object["kind"] == "RoleBinding" && name.starts_with(NAME)
    });
    Ok(objects)
}

/// Starts the program with these values of the chart, and with the rights that the chart grants for
/// them.
pub fn installed(testbed: &Testbed, place: &str, values: &str) -> Result<Running> {
    apply(testbed, &[namespace(place)])?;
    started(testbed, place, &rendered(testbed, place, values)?)
}

/// Starts the program as its pod would run it, with the rights that it was granted.
pub fn started(testbed: &Testbed, place: &str, objects: &[Value]) -> Result<Running> {
    grant(testbed, place, objects)?;
    as_account(testbed, place, objects)
}

/// The same, with a hub in trouble.
pub fn started_over(testbed: &Testbed, place: &str, objects: &[Value], trouble: &Trouble) -> Result<Running> {
    grant(testbed, place, objects)?;
    let token = testbed.hub.server.token(place, NAME)?;
    run_as(objects, &trouble.kubeconfig(testbed.launcher(), place, Some(token))?)
}

/// Gives the rights alone.
pub fn grant(testbed: &Testbed, place: &str, objects: &[Value]) -> Result<()> {
    apply(testbed, &hub_tests::helm::rights(objects, place))
}

/// The same without the right `without` (resource and verb).
pub fn started_without(testbed: &Testbed, place: &str, objects: &[Value], without: (&str, &str)) -> Result<Running> {
    let narrowed = grant_without(testbed, place, objects, without)?;
    as_account(testbed, place, &narrowed)
}

/// Gives all other rights. Returns the objects without this one.
pub fn grant_without(testbed: &Testbed, place: &str, objects: &[Value], without: (&str, &str)) -> Result<Vec<Value>> {
    let narrowed = narrowed(objects, without);
    grant(testbed, place, &narrowed)?;
    // The hub authorizes by what its informers have seen: if the program started at once, it would
    // list before it lost the right, and would not list again.
    for review in reviews(place, objects, without)? {
        wait::until_true("that the hub takes the right away", SOON, || {
            Ok(!testbed.hub.server.may(place, NAME, &review)?)
        })?;
    }
    Ok(narrowed)
}

/// The access reviews of a right, one for each rule of `objects` that grants it, in the namespace
/// where the rule is bound.
fn reviews(place: &str, objects: &[Value], (resource, verb): (&str, &str)) -> Result<Vec<Value>> {
    let grants = |rule: &&Value| {
        let verbs = rule["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|granted| *granted == verb));
        verbs && names(rule, resource)
    };
    let mut reviews = Vec::new();
    for role in objects {
        for rule in role["rules"].as_array().into_iter().flatten().filter(grants) {
            let is_its = |binding: &&Value| {
                binding["roleRef"]["name"] == role["metadata"]["name"] && binding["roleRef"]["kind"] == role["kind"]
            };
            let binding = objects.iter().find(is_its).context("the role is not bound")?;
            let namespace = match binding["metadata"]["namespace"].as_str() {
                _ if binding["kind"] == "ClusterRoleBinding" => "",
                namespace => namespace.unwrap_or(place),
            };
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            reviews.push(json!({"verb": verb, "group": rule["apiGroups"][0], "resource": resource,
                "subresource": subresource, "name": rule["resourceNames"][0].as_str().unwrap_or_default(),
                "namespace": namespace}));
        }
    }
    ensure!(!reviews.is_empty(), "no rule grants what is to be missed");
    Ok(reviews)
}

fn as_account(testbed: &Testbed, place: &str, objects: &[Value]) -> Result<Running> {
    run_as(objects, &hub_tests::helm::account_kubeconfig(&testbed.hub.server, place, NAME)?)
}

/// What the chart's Deployment starts.
fn run_as(objects: &[Value], kubeconfig: &Path) -> Result<Running> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("a Deployment")?;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("arguments")?;
    // The gateway's Service has no address here: the hub leads to the gateway.
    let is_of_pod = |argument: &&str| argument.starts_with("--gateway-");
    let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).filter(|it| !is_of_pod(it)).collect();
    let namespace = arguments.iter().find_map(|argument| argument.strip_prefix("--secret-namespace="));
    Running::as_user(namespace.context("a namespace of clusters")?, kubeconfig, &arguments)
}

fn each(testbed: &Testbed) -> Result<()> {
    let kubeconfig = member_kubeconfig(testbed, "token");
    // A source of watched namespaces has rights only there.
    let place = "rights-narrow";
    apply(testbed, &[namespace(place), namespace("rights-fleet")])?;
    let values =
        "controllers.sources.kubeconfig=true,controllers.sources.capi=true,controllers.watchNamespaces={rights-fleet}";
    let running = started(testbed, place, &rendered(testbed, place, values)?)?;
    apply(testbed, &[kubeconfig_secret("rights-fleet", "narrow", &kubeconfig)])?;
    wait_secret(testbed, place, "narrow")?;
    let may = |verb: &str, resource: &str, namespace: &str| -> Result<bool> {
        let attributes = json!({"verb": verb, "resource": resource, "namespace": namespace});
        testbed.hub.server.may(place, NAME, &attributes)
    };
    ensure!(may("get", "secrets", "rights-fleet")? && !may("patch", "secrets", "rights-fleet")?);
    ensure!(!may("get", "secrets", "kube-system")? && !may("update", "secrets", place)?, "more than it needs");
    ensure!(!may("create", "pods", place)? && !may("impersonate", "users", place)?);
    wait::until("an Event", SOON, || event(testbed, "rights-fleet", "narrow", "ClusterRegistered"))?;
    testbed.hub.server.delete("secret narrow -n rights-fleet")?;
    wait_gone(testbed, place, "narrow")?;
    nothing_refused(testbed, place)?;
    drop(running);
    karmada(testbed)
}

/// Rights to Secrets of one namespace, and to objects without a namespace.
fn karmada(testbed: &Testbed) -> Result<()> {
    let place = "rights-karmada";
    let kind = definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster");
    let token = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rights", "namespace": "karmada-cluster"},
        "stringData": {"token": "token"},
    });
    apply(testbed, &[namespace(place), namespace("karmada-cluster"), kind, token])?;
    let running = started(testbed, place, &rendered(testbed, place, "controllers.sources.karmada=true")?)?;
    let cluster = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "rights"},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://10.9.8.7",
            "secretRef": {"namespace": "karmada-cluster", "name": "rights"}},
    });
    apply(testbed, &[cluster])?;
    wait_secret(testbed, &running.namespace, "rights")?;
    testbed.hub.server.delete("clusters.cluster.karmada.io rights")?;
    wait_gone(testbed, place, "rights")?;
    nothing_refused(testbed, place)
}

/// Checks that the controllers asked for nothing that the chart does not grant.
pub fn nothing_refused(testbed: &Testbed, place: &str) -> Result<()> {
    let told = refused(&testbed.log()?, place);
    ensure!(told.is_empty(), "{told:?}");
    Ok(())
}

/// Whether a rule names `resource`, perhaps among others.
fn names(rule: &Value, resource: &str) -> bool {
    rule["resources"].as_array().is_some_and(|names| names.iter().any(|name| name == resource))
}

/// The rules that grant what `rule` does, except `verb` on `resource`.
fn without_right(rule: &Value, (resource, verb): (&str, &str)) -> Vec<Value> {
    if !names(rule, resource) {
        return vec![rule.clone()];
    }
    let without = |field: &str, value: &str| -> Vec<Value> {
        rule[field].as_array().into_iter().flatten().filter(|other| **other != *value).cloned().collect()
    };
    let (mut narrowed, mut others) = (rule.clone(), rule.clone());
    narrowed["resources"] = json!([resource]);
    narrowed["verbs"] = without("verbs", verb).into();
    others["resources"] = without("resources", resource).into();
    // The API server refuses an empty list.
    let is_whole = |rule: &Value| ["resources", "verbs"].iter().all(|field| rule[field] != json!([]));
    [narrowed, others].into_iter().filter(is_whole).collect()
}

/// The objects without the right `without` (resource and verb).
fn narrowed(objects: &[Value], without: (&str, &str)) -> Vec<Value> {
    let mut objects = objects.to_vec();
    for object in &mut objects {
        if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
            *rules = rules.iter().flat_map(|rule| without_right(rule, without)).collect();
        }
    }
    objects
}

/// The cluster's Secret is in a namespace that the testbed's gateway does not serve: with the right
/// to probe, the probe finds the member unreachable.
fn profiles(testbed: &Testbed) -> Result<()> {
    let (place, fleet) = ("audited-profiles", "audited-profiles-fleet");
    profile_kind(testbed)?;
    apply(testbed, &[namespace(place), namespace(fleet)])?;
    let values = "controllers.parts.clusterProfile=true,controllers.clusterProfileNamespaces={audited-profiles-fleet}";
    let objects = rendered(testbed, place, values)?;
    let cluster = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "seen", "namespace": place,
            "labels": {"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"}},
        "stringData": {"endpoint": "https://10.9.8.7", "token": "t", "ca.crt": "c"},
    });
    let profile = format!("clusterprofile seen -n {fleet}");
    let told = || Ok::<_, anyhow::Error>(testbed.hub.server.read(&profile)?["status"].to_string());
    let mark = testbed.audit.mark()?;
    let mut running = started(testbed, place, &objects)?;
    apply(testbed, std::slice::from_ref(&cluster))?;
    wait::until_true("the probe's outcome", SOON, || Ok(told()?.contains("\"reason\":\"Unreachable\"")))?;
    testbed.hub.server.delete(&format!("secret seen -n {place}"))?;
    wait_end(&testbed.hub.server, &profile)?;
    none_idle(testbed, place, &objects, mark, &events())?;
    running.stop()?;

    let running = started_without(testbed, place, &objects, ("clustergateways/proxy", "get"))?;
    let probes = |outcome: &str| running.metric("cluster_gateway_controllers_cluster_probes_total", outcome);
    apply(testbed, &[cluster])?;
    wait::until_true("that get on clustergateways/proxy is missed", SOON, || Ok(probes("not_probed")? >= 1.0))?;
    ensure!(probes("unreachable")? == 0.0 && told()?.contains("NotProbed"), "a member is judged without a look");
    Ok(())
}

/// Whether the hub has refused this to the controllers of a namespace.
pub fn is_refused_to(testbed: &Testbed, place: &str, verb: &str, resource: &str) -> Result<bool> {
    Ok(is_refused_in(&testbed.log()?, place, verb, resource))
}

/// The same by the programs' log, which may have been read for several questions.
pub fn is_refused_in(log: &str, place: &str, verb: &str, resource: &str) -> bool {
    let words = format!(" cannot {verb} resource \"{resource}\"");
    refused(log, place).iter().any(|line| line.contains(&words))
}

/// Refusals of the hub to the controllers of a namespace, from the programs' log.
fn refused(log: &str, place: &str) -> Vec<String> {
    let account = format!("system:serviceaccount:{place}:{NAME}");
    // The name may be quoted several times over.
    let refusal = format!("{account}\" cannot ");
    let theirs = lines::with(log, &[&account]).into_iter().map(|line| line.replace('\\', ""));
    theirs.filter(|line| line.contains(&refusal)).collect()
}

fn less(testbed: &Testbed) -> Result<()> {
    let place = "rights-less";
    apply(testbed, &[namespace(place), namespace("rights-poor")])?;
    let values = "controllers.sources.kubeconfig=true,controllers.watchNamespaces={rights-poor}";
    let mut objects = rendered(testbed, place, values)?;
    for object in &mut objects {
        if object["kind"] == "Role" {
            object["rules"][0]["verbs"] = json!(["get", "list", "watch", "create", "delete"]);
        }
    }
    let running = started(testbed, place, &objects)?;
    apply(testbed, &[kubeconfig_secret("rights-poor", "poor", &member_kubeconfig(testbed, "token"))])?;
    let why = wait::until("that it says why", SOON, || {
        let report = running.report("rights-poor/poor")?;
        let why = report["reason"].as_str().unwrap_or_default().to_owned();
        ensure!(why.contains("cannot patch resource"), "{report}");
        Ok(why)
    })?;
    ensure!(!why.contains("token:"), "{why}");
    ensure!(running.metric("cluster_gateway_controllers_failures_total", "")? >= 1.0);
    Ok(())
}
