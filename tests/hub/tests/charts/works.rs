//! `ManifestWorks` that an admission policy checks, written by users of the hub.

use hub_tests::http::Client;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, namespace, on_hub};
use crate::installed::{Installed, RELEASE};
use crate::kinds::Kinds;

const GROUP: &str = "work.open-cluster-management.io";
/// The namespace of a cluster, and of another.
const CLUSTER: &str = "guarded-cluster";
const OTHER: &str = "guarded-other";
const VALUES: &str = "--set=controllers.enabled=true,controllers.parts.placement=true,controllers.workAdmission=true";
/// Time for the hub to enforce policies and grant rights.
const SOON: Duration = Duration::from_secs(20);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "works::what they hold, and who may name an executor", guarded)]
}

/// A user with a token, whom RBAC lets write works and sets of them.
struct User {
    kubectl: Kubectl,
    client: Client,
    bearer: String,
    name: String,
}

fn guarded(planes: &Planes) -> Result<()> {
    let kinds = Kinds::bring(planes)?;
    planes.hub.server.create(&[CLUSTER, OTHER].map(namespace))?;
    planes.hub.apply(&[work("old", &json!({}))]).context("before the policy")?;
    let release = Installed { planes, namespace: "guarded" };
    release.helm("install", &[VALUES.to_owned()])?;
    wait::until_true("the policy", SOON, || {
        Ok(planes.hub.server.dry_run(&work("none", &json!({})))?.text().contains("at least one"))
    })?;
    let writer = User::of(planes, CLUSTER, "writer")?;
    held(&writer)?;
    named(planes, &writer)?;
    controllers(planes, &writer, &release)?;
    // A work from before the policy can be labelled and deleted, but not changed into another
    // invalid one.
    ensure!(writer.patch("old", &json!({"metadata": {"labels": {"a": "b"}}}))?.contains("patched"));
    ensure!(writer.patch("old", &json!({"spec": {"deleteOption": {}}}))?.contains("at least one"));
    release.uninstall()?;
    kinds.delete()
}

fn work(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": CLUSTER}, "spec": spec})
}

fn set(name: &str, template: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": name, "namespace": CLUSTER},
        "spec": {"placementRefs": [{"name": "p"}], "manifestWorkTemplate": template}})
}

fn map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "apps"}, "data": {"a": data}})
}

fn of(manifests: &[Value]) -> Value {
    json!({"workload": {"manifests": manifests}})
}

fn by(account: &Value, data: &str) -> Value {
    json!({"workload": {"manifests": [map("a", data)]},
        "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": account}}})
}

/// The limits of the contents of works, and of templates of sets.
fn held(writer: &User) -> Result<()> {
    let mut unnamed = map("a", "");
    unnamed["metadata"] = json!({"namespace": "apps"});
    let mut generated = map("a", "");
    generated["metadata"]["generateName"] = "a-".into();
    let many: Vec<Value> = (0..1200).map(|number| map(&format!("map-{number}"), &"x".repeat(300))).collect();
    let crowd: Vec<Value> = (0..1501).map(|number| map(&format!("map-{number}"), "")).collect();
    let missing =
        json!({"workload": {"manifests": [map("a", "")]}, "executor": {"subject": {"type": "ServiceAccount"}}});
    let rows = [
        (json!({}), "workload.manifests: at least one"),
        (of(&[]), "workload.manifests: at least one"),
        (of(&[map("a", ""), unnamed]), "each needs a metadata.name"),
        (of(&[generated]), "none may have a metadata.generateName"),
        (of(&[map("a", &"x".repeat(501 * 1024))]), "more than 500 KiB"),
        (of(&[map("a", &"x".repeat(250 * 1024)), map("b", &"y".repeat(251 * 1024))]), "more than 500 KiB"),
        // The limit counts bytes, not characters.
        (of(&[map("a", &"\u{e9}".repeat(251 * 1024))]), "more than 500 KiB"),
        (missing, "executor.subject.serviceAccount: it is missing"),
        (of(&[map("a", &"x".repeat(499 * 1024))]), "created"),
        (of(&many), "created"),
        (of(&crowd[..1500]), "created"),
        (of(&crowd), "workload.manifests: more than 1500"),
    ];
    for (index, (spec, word)) in rows.iter().enumerate() {
        for object in [work(&format!("held-{index}"), spec), set(&format!("held-{index}"), spec)] {
            let told = writer.create(&object)?;
            let begins = if object["kind"] == "ManifestWork" { " spec." } else { " spec.manifestWorkTemplate." };
            ensure!(told.contains(word) && (*word == "created" || told.contains(begins)), "{index}, {word}: {told}");
        }
    }
    Ok(())
}

/// Only users with the right may name an executor, or change what is done in its name.
fn named(planes: &Planes, writer: &User) -> Result<()> {
    let deployer = json!({"namespace": "apps", "name": "deployer"});
    let told = writer.create(&work("named", &by(&deployer, "1")))?;
    ensure!(
        told.contains("Forbidden")
            && told.contains(&format!(
                r#"user "{}" may not have works done as "system:serviceaccount:apps:deployer""#,
                writer.name
            )),
        "{told}"
    );
    ensure!(told.contains(r#"needs "execute-as" of "manifestworks""#) && told.contains(CLUSTER), "{told}");
    writer.grant(planes, "Role", "apps:deployer")?;
    wait::until_true("who may", SOON, || Ok(writer.create(&work("named", &by(&deployer, "1")))?.contains("created")))?;
    // The right is for that name in that namespace.
    let other = json!({"namespace": "apps", "name": "other"});
    ensure!(writer.create(&work("other", &by(&other, "1")))?.contains("may not have works done as"));
    let mut elsewhere = work("named", &by(&deployer, "1"));
    elsewhere["metadata"]["namespace"] = OTHER.into();
    ensure!(writer.create(&elsewhere)?.contains(OTHER), "a right in one namespace is one in another");
    ensure!(writer.create(&set("named", &by(&deployer, "1")))?.contains("in all namespaces"), "its works go anywhere");
    ensure!(
        writer
            .patch("named", &json!({"spec": {"executor": {"subject": {"serviceAccount": {"name": "root"}}}}}))?
            .contains("apps:root")
    );

    // A user without the right can change nothing that is done in that name.
    let meddler = User::of(planes, CLUSTER, "meddler")?;
    let change = json!({"spec": {"workload": {"manifests": [map("a", "2")]}}});
    ensure!(meddler.patch("named", &change)?.contains(&meddler.name), "in another's name");
    ensure!(writer.patch("named", &change)?.contains("patched"));
    ensure!(meddler.patch("named", &json!({"metadata": {"labels": {"a": "b"}}}))?.contains("patched"));
    writer.grant(planes, "ClusterRole", "apps:deployer")?;
    wait::until_true("who may everywhere", SOON, || {
        Ok(writer.create(&set("named", &by(&deployer, "1")))?.contains("created"))
    })?;
    changed(planes, writer, &meddler)
}

fn work_labelled(work: &Value, name: &str) -> Value {
    let mut other = work.clone();
    other["metadata"]["name"] = name.into();
    other
}

/// Other changes of a work with an executor, and of a set.
fn changed(planes: &Planes, writer: &User, meddler: &User) -> Result<()> {
    let none = json!({"spec": {"executor": null}});
    let told = meddler.patch("named", &none)?;
    ensure!(told.contains("may not take") && told.contains("apps:deployer") && told.contains(&meddler.name), "{told}");
    let moved = json!({"spec": {"placementRefs": [{"name": "everywhere"}]}});
    let told = meddler.patch_of("manifestworkreplicaset", "named", &moved)?;
    ensure!(told.contains("may not have works done as") && told.contains("in all namespaces"), "{told}");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    ensure!(meddler.patch_of("manifestworkreplicaset", "named", &labelled)?.contains("patched"));
    ensure!(writer.patch_of("manifestworkreplicaset", "named", &moved)?.contains("patched"));
    let template = json!({"spec": {"manifestWorkTemplate": {"executor": null}}});
    ensure!(meddler.patch_of("manifestworkreplicaset", "named", &template)?.contains("may not take"));
    // A status does not affect what is done.
    let status = json!({"status": {"conditions": []}});
    planes.hub.server.patch(&format!("manifestwork named -n {CLUSTER} --subresource=status"), &status)?;
    // The whole object, as `kubectl replace` sends it.
    let replaced = meddler.kubectl.args(["replace", "-f", "-"]).stdin(work("named", &of(&[map("a", "3")])).to_string());
    let told = replaced.run()?.stderr;
    ensure!(told.contains("may not take"), "{told}");
    ensure!(writer.patch("named", &none)?.contains("patched"));
    // With many manifests, the policy checks the old and the new version.
    let many = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"deleteOption": {"propagationPolicy": "Orphan"}}});
    let told = writer.patch("held-9", &many)?;
    ensure!(told.contains("patched"), "{told}");
    Ok(())
}

/// The controllers write the works of sets; the policy has checked the sets' authors.
fn controllers(planes: &Planes, writer: &User, release: &Installed<'_>) -> Result<()> {
    let account = User::of(planes, release.namespace, &format!("{RELEASE}-controllers"))?;
    let anybody = json!({"namespace": "apps", "name": "anybody"});
    let mut own = work("of-a-set", &by(&anybody, "1"));
    ensure!(account.create(&own)?.contains("may not have works done as"), "a work of no set");
    own["metadata"]["labels"] = json!({format!("{GROUP}/manifestworkreplicaset"): "a.b"});
    let told = account.create(&own)?;
    ensure!(told.contains("created"), "{told}");
    ensure!(writer.create(&work_labelled(&own, "of-a-label"))?.contains("may not have works done as"), "a label");
    ensure!(account.create(&set("of-nobody", &by(&anybody, "1")))?.contains("may not have works done as"));
    ensure!(writer.create(&work("of-a-writer", &by(&anybody, "1")))?.contains("may not have works done as"));
    Ok(())
}

// === impl User ===

impl User {
    /// A user, created if need be, with the rights of RBAC, but none that admission checks.
    fn of(planes: &Planes, namespace: &str, name: &str) -> Result<Self> {
        let verbs = json!(["get", "create", "update", "patch", "delete"]);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "guarded-writers"}, "rules": [{"apiGroups": [GROUP],
                "resources": ["manifestworks", "manifestworkreplicasets"], "verbs": verbs}]});
        planes.hub.apply(&[role, binding("ClusterRole", "guarded-writers", namespace, name)])?;
        let token = planes.hub.server.service_account_token(namespace, name)?;
        let write = json!({"verb": "create", "group": GROUP, "resource": "manifestworks", "namespace": CLUSTER});
        wait::until_true("who may write", SOON, || planes.may(namespace, name, &write))?;
        let bearer = format!("Bearer {token}");
        let kubeconfig = planes.hub.server.kubeconfig(&format!("guarded-{name}"), Credential::Token(token))?;
        let kubectl = Kubectl { kubeconfig, ..planes.hub.server.kubectl() };
        let (client, name) = (planes.hub.server.client(None), format!("system:serviceaccount:{namespace}:{name}"));
        Ok(Self { kubectl, client, bearer, name })
    }

    /// Creates an object as kubectl does: "created", or the refusal.
    fn create(&self, object: &Value) -> Result<String> {
        let namespace = object["metadata"]["namespace"].as_str().context("a namespace")?;
        let plural = format!("{}s", object["kind"].as_str().context("a kind")?.to_lowercase());
        let version = object["apiVersion"].as_str().context("a version")?;
        let path = format!("/apis/{version}/namespaces/{namespace}/{plural}?fieldValidation=Strict");
        self.sent(&Method::POST, &path, "application/json", object, (StatusCode::CREATED, "created"))
    }

    /// What became of a request: the word for the expected status, or reason and message of the
    /// refusal.
    fn sent(
        &self,
        method: &Method,
        path: &str,
        kind: &str,
        body: &Value,
        (expected, word): (StatusCode, &str),
    ) -> Result<String> {
        let headers = [("authorization", self.bearer.as_str()), ("content-type", kind), ("accept", "application/json")];
        let answer = self.client.send(method, path, &headers, Bytes::from(body.to_string()))?;
        if answer.status == expected {
            return Ok(word.to_owned());
        }
        let status = answer.json()?;
        let text = |field: &str| status[field].as_str().map(str::to_owned).with_context(|| status.to_string());
        Ok(format!("({}): {}", text("reason")?, text("message")?))
    }

    fn patch(&self, name: &str, change: &Value) -> Result<String> {
        self.patch_of("manifestwork", name, change)
    }

    fn patch_of(&self, kind: &str, name: &str, change: &Value) -> Result<String> {
        let version = if kind == "manifestwork" { "v1" } else { "v1alpha1" };
        let path = format!("/apis/{GROUP}/{version}/namespaces/{CLUSTER}/{kind}s/{name}");
        self.sent(&Method::PATCH, &path, "application/merge-patch+json", change, (StatusCode::OK, "patched"))
    }

    /// Grants the right to an account's name: in its namespace by a Role, in all by a
    /// `ClusterRole`.
    fn grant(&self, planes: &Planes, kind: &str, account: &str) -> Result<()> {
        let name = format!("guarded-{}", kind.to_lowercase());
        let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "rules": [{"apiGroups": [GROUP], "resources": ["manifestworks"],
                "resourceNames": [format!("system:serviceaccount:{account}")], "verbs": ["execute-as"]}]});
        if kind == "Role" {
            role["metadata"]["namespace"] = CLUSTER.into();
        }
        let (_, user) = self.name.rsplit_once(':').context("a name")?;
        planes.hub.apply(&[role, binding(kind, &name, CLUSTER, user)])
    }
}

fn binding(kind: &str, role: &str, namespace: &str, user: &str) -> Value {
    let mut binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
        "metadata": {"name": format!("{role}-{user}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": namespace}]});
    if kind == "Role" {
        binding["metadata"]["namespace"] = namespace.into();
    }
    binding
}
