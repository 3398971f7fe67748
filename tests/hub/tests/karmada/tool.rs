//! Karmada's own command line on a hub without a Karmada: a cluster joins, is used, cordoned, and
//! leaves.

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::karmada;
use hub_tests::kubectl::Kubectl;
use hub_tests::page::{below, first};
use hub_tests::prelude::*;
use hub_tests::tools::{Tool, provide};

use super::{BERLIN, CLUSTERS, registered};
use crate::streams;

/// A cluster that the tool itself registers.
const JOINED: &str = "karmada-joined";
/// A user who may write clusters, and read no Secrets.
const WRITER: &str = "karmada-writer";
const NAMESPACE: &str = "karmada-cluster";
const POD: &str = "karmada-pod";

/// The rights that the chart grants with `dialects.karmada.register`.
fn rights(testbed: &Testbed) -> Result<()> {
    testbed.hub.server.create_namespace(NAMESPACE)?;
    let subjects = json!([{"kind": "ServiceAccount", "name": "gateway", "namespace": SECRET_NAMESPACE}]);
    let role = |namespace: &str, verbs: &[&str]| {
        let metadata = json!({"name": "gateway-karmada", "namespace": namespace});
        let api_version = "rbac.authorization.k8s.io/v1";
        [
            json!({"apiVersion": api_version, "kind": "Role", "metadata": metadata,
                "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]}),
            json!({"apiVersion": api_version, "kind": "RoleBinding", "metadata": metadata, "subjects": subjects,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gateway-karmada"}}),
        ]
    };
    testbed.hub.apply(&role(SECRET_NAMESPACE, &["create", "update", "delete"]))?;
    testbed.hub.apply(&role(NAMESPACE, &["get"]))
}

pub(super) fn karmadactl(testbed: &Testbed) -> Result<()> {
    let _alone = super::GROUP.lock();
    let hub = &testbed.hub;
    hub.register_member(BERLIN, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    rights(testbed)?;
    let flags = ["--karmada-dialect=standalone", "--feature-gates=HealthinessCheck=true"];
    let gateway = testbed.start_gateway("karmada-tool", &hub.gateway_kubeconfig(), &flags)?;
    registered(testbed, &gateway)?;
    let admin = hub.server.kubectl();
    let binary = provide(Tool::Karmadactl)?;
    let tool = Kubectl { binary, kubeconfig: admin.kubeconfig.clone(), cache: testbed.directory("karmadactl")? };
    let tried = shown(&tool, &admin)
        .and_then(|()| cordoned(&tool, &admin))
        .and_then(|()| page(&tool))
        .and_then(|()| members(testbed, &tool))
        .and_then(|()| joins_and_leaves(testbed, &tool, &admin))
        .and_then(|()| documents(&admin))
        .and_then(|()| refusals(testbed));
    // Before the gateway ends: the hub's discovery requests every API that is registered.
    hub.server.delete(super::API_SERVICE)?;
    tried
}

/// The words of a list, without the spaces between them.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn line<'a>(text: &'a str, name: &str) -> Result<Vec<&'a str>> {
    let found = text.lines().map(words).find(|words| words.first() == Some(&name));
    found.with_context(|| format!("{name} is not in {text}"))
}

fn shown(tool: &Kubectl, admin: &Kubectl) -> Result<()> {
    let listed = tool.ok("get clusters")?;
    // The tool's own columns, around those of the server.
    ensure!(words(&listed)[..6] == ["NAME", "CLUSTER", "VERSION", "MODE", "READY", "AGE"], "{listed}");
    let berlin = line(&listed, BERLIN)?;
    ensure!(berlin[1..4] == ["Karmada", "Push", "Unknown"], "{listed}");
    let wide = admin.ok("get clusters.cluster.karmada.io -o wide")?;
    let head = ["ZONES", "REGION", "PROVIDER", "API-ENDPOINT", "PROXY-URL"];
    ensure!(words(&wide)[5..10] == head, "{wide}");
    let described = tool.ok(&format!("describe cluster {BERLIN}"))?;
    ensure!(described.contains("Sync Mode:") && described.contains("Push"), "{described}");
    Ok(())
}

fn cordoned(tool: &Kubectl, admin: &Kubectl) -> Result<()> {
    let taints = || admin.ok(&format!("get clusters.cluster.karmada.io {BERLIN} -o jsonpath={{.spec.taints[*].key}}"));
    for (command, said, expected) in [
        ("cordon", "cordoned", "cluster.karmada.io/unschedulable"),
        ("cordon", "already cordoned", "cluster.karmada.io/unschedulable"),
        ("uncordon", "uncordoned", ""),
    ] {
        let output = tool.ok(&format!("{command} {BERLIN}"))?;
        ensure!(output.contains(said), "{command}: {output}");
        let found = taints()?;
        ensure!(found == expected, "{command}: {found}");
    }
    tool.ok(&format!("taint clusters {BERLIN} a=b:NoExecute"))?;
    let added =
        admin.ok(&format!("get clusters.cluster.karmada.io {BERLIN} -o jsonpath={{.spec.taints[0].timeAdded}}"))?;
    ensure!(added.ends_with('Z'), "no time was stamped: {added:?}");
    tool.ok(&format!("taint clusters {BERLIN} a:NoExecute-")).map(drop)
}

/// The tool's commands for members, which it sends through the proxy.
fn members(testbed: &Testbed, tool: &Kubectl) -> Result<()> {
    let member = testbed.member.server.kubectl();
    member.ok(&format!("create configmap {POD} -n default --from-literal=a=b"))?;
    let scope = format!("--operation-scope=members --clusters={BERLIN}");
    let listed = tool.ok(&format!("get configmaps -n default {scope}"))?;
    let found = line(&listed, POD)?;
    ensure!(found[1] == BERLIN, "{listed}");
    let listed = tool.ok(&format!("get namespaces {scope}"))?;
    line(&listed, "kube-system")?;
    let scope = format!("--operation-scope=members --cluster={BERLIN}");
    let described = tool.ok(&format!("describe configmap {POD} -n default {scope}"))?;
    ensure!(described.contains(POD), "{described}");
    let resources = tool.ok(&format!("api-resources {scope}"))?;
    line(&resources, "configmaps")?;
    streams::pod(testbed)?;
    let words =
        ["exec", "shell", "-n", "streams", "--operation-scope=members", "--cluster", BERLIN, "--", "echo", "typed"];
    let output = tool.args(words).run()?;
    ensure!(output.stdout == "typed\n", "{output:?}");
    every(&testbed.hub.server.kubectl())?;
    testbed.member.server.delete(&format!("configmap {POD} -n default"))
}

/// All members at once: the member has at least two names here, so the object appears under each.
fn every(admin: &Kubectl) -> Result<()> {
    let path = format!("{CLUSTERS}/*/proxy/api/v1/namespaces/default/configmaps");
    let list: Value = serde_json::from_str(&admin.ok(&format!("get --raw {path}?limit=500"))?)?;
    let items = list["items"].as_array().context("no items")?;
    let of = |cluster: &str| {
        let is_it =
            |item: &&Value| item["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"] == cluster;
        items.iter().filter(is_it).any(|item| item["metadata"]["name"] == POD)
    };
    ensure!(list["kind"] == "ConfigMapList" && of(BERLIN) && of(CLUSTER), "{list}");
    let twice = admin.args(["get", "--raw", &format!("{path}/{POD}")]).run()?;
    super::refused(&twice, "exist in more than one cluster")
}

fn joins_and_leaves(testbed: &Testbed, tool: &Kubectl, admin: &Kubectl) -> Result<()> {
    let member = testbed.member.server.kubectl();
    let member = member.kubeconfig.display();
    let place = "--cluster-region=eu --cluster-provider=p";
    let words = format!("join {JOINED} --cluster-kubeconfig={member} {place}");
    karmada::has_joined(&tool.args(words.split(' ')).run()?, JOINED)?;
    let wide = admin.ok("get clusters.cluster.karmada.io -o wide")?;
    let found = line(&wide, JOINED)?;
    ensure!(found[4..7] == ["<none>", "eu", "p"], "{wide}");
    // The gateway reaches it with the credential that the tool created.
    wait::until("the member to answer by its new name", super::LIMIT, || {
        let version = admin.ok(&format!("get --raw {CLUSTERS}/{JOINED}/proxy/version"))?;
        ensure!(version.contains("gitVersion"), "{version}");
        Ok(())
    })?;
    let again = tool.args(["join", JOINED, &format!("--cluster-kubeconfig={member}")]).run()?;
    ensure!(again.status != 0 && again.stderr.contains("has been registered"), "{again:?}");
    let words = format!("unjoin {JOINED} --cluster-kubeconfig={member} --cluster-context=it");
    karmada::has_left(&tool.args(words.split(' ')).run()?)?;
    let gone = admin.args(["get", "clusters.cluster.karmada.io", JOINED]).run()?;
    ensure!(gone.stderr.contains("NotFound"), "{gone:?}");
    let secret = admin.args(["get", "secret", "-n", SECRET_NAMESPACE, JOINED]).run()?;
    ensure!(secret.stderr.contains("NotFound"), "{secret:?}");
    testbed.hub.server.delete(&format!("secrets --all -n {NAMESPACE}"))
}

/// The hub merges the group's documents with those of all others.
fn documents(admin: &Kubectl) -> Result<()> {
    wait::until("the hub to describe the group", super::LIMIT, || {
        let explained = admin.ok("explain clusters.spec.syncMode --api-version=cluster.karmada.io/v1alpha1")?;
        ensure!(explained.contains("Push or Pull"), "{explained}");
        Ok(())
    })?;
    let resources = admin.ok("api-resources --api-group=cluster.karmada.io --no-headers")?;
    ensure!(words(&resources) == ["clusters", "cluster.karmada.io/v1alpha1", "false", "Cluster"], "{resources}");
    Ok(())
}

/// A user who may write clusters, but not read a Secret, cannot get that Secret's token sent
/// anywhere by naming it in a cluster.
fn refusals(testbed: &Testbed) -> Result<()> {
    let hub = &testbed.hub;
    let token = hub.server.service_account_token("default", WRITER)?;
    hub.apply(&super::grant_to(WRITER, "clusters", None))?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": WRITER, "namespace": NAMESPACE},
        "stringData": {"token": "canary"}});
    hub.apply(&[secret])?;
    let kubeconfig = hub.server.kubeconfig(WRITER, Credential::Token(token))?;
    let writer = Kubectl { kubeconfig, cache: testbed.directory(WRITER)?, ..hub.server.kubectl() };
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": WRITER},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://evil.example", "secretRef": {"namespace": NAMESPACE, "name": WRITER}}});
    wait::until("the hub to know of the right", super::LIMIT, || {
        let refused = writer.args(["create", "-f", "-"]).stdin(cluster.to_string()).run()?;
        super::refused(&refused, &format!("secrets \"{WRITER}\" is forbidden"))
    })?;
    let bad = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": WRITER},
        "spec": {"syncMode": "Push", "colour": "red"}});
    let strict = writer.args(["create", "-f", "-"]).stdin(bad.to_string()).run()?;
    super::refused(&strict, "unknown field \"spec.colour\"")
}

/// The commands of the page, unchanged.
fn page(tool: &Kubectl) -> Result<()> {
    const PAGE: &str = include_str!("../../../../docs/dialects.md");
    for command in first(below(PAGE, "### Karmada's clusters")?, "sh")?.lines() {
        tool.ok(command.strip_prefix("karmadactl ").context("another program")?)?;
    }
    Ok(())
}
