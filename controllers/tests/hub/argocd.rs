//! Argo CD's cluster Secrets, with the rights that the chart grants: kubectl reaches a real member
//! with the fields of such a Secret.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::turns;
use hub_tests::wait;
use kit::lines;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, apply, event, test};
use crate::part::{Part, has_part};
use crate::rights::used::{events, none_idle};
use crate::rights::{grant, is_refused_to, rendered, started_without};

const WRITES: &str = "cluster_gateway_argocd_secret_writes_total";
/// Each accepted `ManagedCluster` gets a Secret here, and each removal counts towards the limit.
pub const ALONE: &str = "accepted ManagedClusters";
const ACCOUNT: &str = "cluster-gateway-argocd";
/// The namespace of the controllers whose rights are audited.
const ARGO: &str = "audited-argocd";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "argocd: kubectl with a Secret's fields lists pods, and follows its token", reached),
        test(fixture, "argocd: what is not ours is not touched, and what is ours is put back", ours),
        test(fixture, "argocd: Secrets of clusters that are gone go, and not of a crowd", gone),
        test(fixture, "rights: argocd with what the chart grants, of which nothing stands idle", used),
    ]
}

/// The part, as the chart installs it, and Argo CD's namespace.
struct Place<'t> {
    part: Part<'t>,
    namespace: String,
}

has_part!(Place);

impl<'t> Place<'t> {
    /// Starts with a ServiceAccount that may read everything of `CLUSTER`.
    fn start(testbed: &'t Testbed, name: &'static str, more: &str) -> Result<Self> {
        let alone = turns::alone(&[ALONE]);
        let namespace = format!("{name}-argocd");
        let rights = json!([{"apiGroups": ["cluster.core.oam.dev"], "resources": ["clustergateways/proxy"],
            "resourceNames": [CLUSTER], "verbs": ["get"]}]);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": namespace}, "rules": rights});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]});
        apply(testbed, &[crate::fixture::namespace(&namespace), role, binding, account(&namespace)])?;
        let values = format!("controllers.parts.argocd=true,controllers.argocd.namespace={namespace}{more}");
        Ok(Self { part: Part::install(testbed, name, &values, vec![alone])?, namespace })
    }

    fn secret(&self, name: &str) -> Result<Value> {
        self.json(&format!("secret {name} -n {}", self.namespace))
    }

    fn wait_secret(&self, cluster: &str) -> Result<Value> {
        wait::until(&format!("the Secret of {cluster}"), SOON, || self.secret(&format!("cluster-gateway-{cluster}")))
    }

    fn wait_gone(&self, cluster: &str) -> Result<()> {
        crate::fixture::wait_gone(self.testbed, &self.namespace, &format!("cluster-gateway-{cluster}"))
    }

    /// Patches an object in Argo CD's namespace.
    fn patch(&self, what: &str, patch: &Value) -> Result<()> {
        self.part.patch(&format!("{what} -n {}", self.namespace), patch)
    }

    /// kubectl with the fields that Argo CD reads from a Secret.
    fn kubectl(&self, secret: &Value) -> Result<Kubectl> {
        let config: Value = serde_json::from_str(&text(secret, "config")?)?;
        ensure!(config["tlsClientConfig"]["insecure"] == false, "nobody verifies the server");
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": text(secret, "server")?,
                "certificate-authority-data": config["tlsClientConfig"]["caData"]}}],
            "users": [{"name": "it", "user": {"token": config["bearerToken"]}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]});
        let file: PathBuf = self.testbed.directory("argocd")?.join(format!("{}.json", self.namespace));
        std::fs::write(&file, kubeconfig.to_string())?;
        Ok(Kubectl { kubeconfig: file, ..self.testbed.hub.server.kubectl() })
    }

    fn end(mut self, clusters: &[&str]) -> Result<()> {
        self.running.stop()?;
        self.delete(&format!("managedclusters {} --ignore-not-found", clusters.join(" ")))
    }
}

pub fn account(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}})
}

fn cluster(name: &str, is_accepted: bool) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name}, "spec": {"hubAcceptsClient": is_accepted}})
}

fn text(secret: &Value, key: &str) -> Result<String> {
    let encoded = secret["data"][key].as_str().with_context(|| format!("no {key}"))?;
    Ok(String::from_utf8(STANDARD.decode(encoded)?)?)
}

fn token(secret: &Value) -> Result<String> {
    let config: Value = serde_json::from_str(&text(secret, "config")?)?;
    Ok(config["bearerToken"].as_str().context("a token")?.to_owned())
}

fn reached(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "argo-reached", "")?;
    apply(testbed, &[cluster(CLUSTER, true), cluster("argo-stranger", false)])?;
    let secret = place.wait_secret(CLUSTER)?;
    ensure!(secret["metadata"]["labels"]["argocd.argoproj.io/secret-type"] == "cluster", "{}", secret["metadata"]);
    ensure!(text(&secret, "name")? == CLUSTER && secret["type"] == "Opaque");
    let pods = place.kubectl(&secret)?.ok("get pods -A -o name")?;
    let direct = testbed.member.server.kubectl().ok("get pods -A -o name")?;
    ensure!(pods == direct, "{pods} instead of {direct}");
    // Argo CD gets the account's rights only, not the controllers'.
    ensure!(place.kubectl(&secret)?.ok("create namespace argo-x").is_err(), "it may write");
    // The account is recreated: the Secret gets another token, which works.
    let (first, name) = (token(&secret)?, format!("cluster-gateway-{CLUSTER}"));
    place.delete(&format!("serviceaccount {ACCOUNT} -n {}", place.namespace))?;
    apply(testbed, &[account(&place.namespace)])?;
    wait::until_true("another token", SOON, || Ok(token(&place.secret(&name)?)? != first))?;
    let secret = place.secret(&name)?;
    ensure!(place.kubectl(&secret)?.ok("get pods -A -o name")? == direct, "the new token does not work");
    // After a restart the controllers keep the token and write nothing.
    place.running.restart()?;
    let kept = || place.running.metric("cluster_gateway_argocd_secrets", "");
    wait::until_true("that it is as it should be", SOON, || Ok(kept()? > 0.5))?;
    ensure!(place.running.metric(WRITES, "")? == 0.0, "a restart writes");
    ensure!(
        place.running.metric("cluster_gateway_argocd_tokens_issued_total", "")? == 0.0,
        "a restart asks for a token"
    );
    ensure!(place.secret(&name)?["metadata"]["resourceVersion"] == secret["metadata"]["resourceVersion"]);
    forged(&mut place, &name)?;
    // A cluster that is not accepted is not part of the fleet.
    ensure!(place.secret("cluster-gateway-argo-stranger").is_err(), "a stranger has a Secret");
    place.patch("managedcluster argo-stranger", &json!({"spec": {"hubAcceptsClient": true}}))?;
    place.wait_secret("argo-stranger")?;
    place.patch("managedcluster argo-stranger", &json!({"spec": {"hubAcceptsClient": false}}))?;
    place.wait_gone("argo-stranger")?;
    place.end(&[CLUSTER, "argo-stranger"])
}

/// A token that the hub did not issue is replaced, even if its claims say that it is fresh.
fn forged(place: &mut Place<'_>, name: &str) -> Result<()> {
    place.running.stop()?;
    let account = place.json(&format!("serviceaccount {ACCOUNT} -n {}", place.namespace))?;
    let uid = &account["metadata"]["uid"];
    let now = k8s_openapi::jiff::Timestamp::now().as_second();
    let claims = json!({"sub": format!("system:serviceaccount:{}:{ACCOUNT}", place.namespace), "iat": now,
        "exp": now + 86_400, "kubernetes.io": {"serviceaccount": {"uid": uid}}});
    let part = |value: &Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    let old = format!("{}.{}.{}", part(&json!({"alg": "none"})), part(&claims), part(&json!("signature")));
    let mut config: Value = serde_json::from_str(&text(&place.secret(name)?, "config")?)?;
    config["bearerToken"] = old.as_str().into();
    place.patch(&format!("secret {name}"), &json!({"stringData": {"config": config.to_string()}}))?;
    place.running.restart_stopped()?;
    wait::until_true("another token", SOON, || Ok(token(&place.secret(name)?)? != old))?;
    ensure!(place.kubectl(&place.secret(name)?)?.ok("get pods -A -o name").is_ok(), "the new token does not work");
    Ok(())
}

fn ours(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "argo-ours", "")?;
    let theirs = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "cluster-gateway-argo-taken", "namespace": place.namespace,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": "argo-taken", "server": "https://theirs", "config": "{}"}});
    apply(testbed, &[theirs, cluster("argo-taken", true), cluster("argo-free", true)])?;
    let before = place.secret("cluster-gateway-argo-taken")?;
    let told = wait::until("an Event", SOON, || event(testbed, "default", "argo-taken", "ArgocdSecretNameTaken"))?;
    ensure!(
        told.contains("cluster-gateway-argo-taken") && told.contains("kubectl") && told.contains("delete it"),
        "{told}"
    );
    place.wait_secret("argo-free")?;
    ensure!(place.secret("cluster-gateway-argo-taken")? == before, "a person's Secret is touched");
    // Fields that others add stay; our fields are restored.
    let edit = json!({"stringData": {"project": "blue", "server": "https://elsewhere"}});
    place.patch("secret cluster-gateway-argo-free", &edit)?;
    wait::until_true("that it is put back", SOON, || {
        Ok(text(&place.secret("cluster-gateway-argo-free")?, "server")?.ends_with("/argo-free/proxy"))
    })?;
    ensure!(text(&place.secret("cluster-gateway-argo-free")?, "project")? == "blue", "what others add is gone");
    // The label by which the controllers watch it is restored, too.
    let relabelled = json!({"metadata": {"labels": {"cluster.core.oam.dev/argocd-cluster": null}}});
    place.patch("secret cluster-gateway-argo-free", &relabelled)?;
    let is_labelled = || {
        let labels = place.secret("cluster-gateway-argo-free")?["metadata"]["labels"].clone();
        Ok(labels["cluster.core.oam.dev/argocd-cluster"] == "argo-free")
    };
    wait::until_true("that its label is put back", SOON, is_labelled)?;
    place.delete(&format!("secret cluster-gateway-argo-free -n {}", place.namespace))?;
    place.wait_secret("argo-free")?;
    // A person's Secret holds the name; once it is deleted, ours is written.
    place.delete(&format!("secret cluster-gateway-argo-taken -n {}", place.namespace))?;
    place.patch("managedcluster argo-taken", &json!({"metadata": {"labels": {"a": "b"}}}))?;
    let ours = || Ok(text(&place.wait_secret("argo-taken")?, "server")?.ends_with("/argo-taken/proxy"));
    wait::until_true("our Secret", SOON, ours)?;
    let log = testbed.log()?;
    let token = token(&place.wait_secret("argo-free")?)?;
    ensure!(!lines::has(&log, &token), "a token is in the log");
    place.end(&["argo-taken", "argo-free"])
}

fn gone(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "argo-gone", ",controllers.sourceRemovalLimit=2")?;
    let clusters = ["argo-gone1", "argo-gone2", "argo-gone3", "argo-gone4"];
    apply(testbed, &clusters.map(|name| cluster(name, true)))?;
    clusters.iter().try_for_each(|name| place.wait_secret(name).map(drop))?;
    place.delete("managedcluster argo-gone1")?;
    place.wait_gone("argo-gone1")?;
    // A cluster that is missing from one list keeps its Secret: the controllers did not see its
    // deletion.
    place.running.stop()?;
    place.delete("managedcluster argo-gone2")?;
    place.running.restart_stopped()?;
    apply(testbed, &[cluster("argo-gone1", true)])?;
    place.wait_secret("argo-gone1")?;
    place.secret("cluster-gateway-argo-gone2")?;
    place.delete(&format!("secret cluster-gateway-argo-gone2 -n {}", place.namespace))?;
    place.delete("managedclusters argo-gone1 argo-gone3 argo-gone4")?;
    let held = || place.running.metric("cluster_gateway_argocd_removals_held", "");
    wait::until_true("that they are held", SOON, || Ok((held()? - 3.0).abs() < 0.1))?;
    for name in ["argo-gone1", "argo-gone3", "argo-gone4"] {
        place.secret(&format!("cluster-gateway-{name}"))?;
    }
    // A cluster that is back no longer counts towards the held removals.
    apply(testbed, &[cluster("argo-gone1", true)])?;
    place.wait_gone("argo-gone3")?;
    place.wait_gone("argo-gone4")?;
    place.end(&clusters)
}

fn used(testbed: &Testbed) -> Result<()> {
    let mark = testbed.audit.mark()?;
    let mut place = Place::start(testbed, ARGO, "")?;
    apply(testbed, &[cluster("argo-less", true)])?;
    let first = token(&place.wait_secret("argo-less")?)?;
    // The part patches a Secret, and deletes the Secret of a cluster that is no longer accepted.
    place.patch("secret cluster-gateway-argo-less", &json!({"stringData": {"server": "https://elsewhere"}}))?;
    wait::until_true("that it is put back", SOON, || {
        Ok(text(&place.secret("cluster-gateway-argo-less")?, "server")?.ends_with("/argo-less/proxy"))
    })?;
    stray(&place)?;
    place.wait_gone("argo-less-gone")?;
    // After a restart the part reviews the token that it finds, and requests another one for a
    // recreated account.
    place.running.restart()?;
    let kept = || place.running.metric("cluster_gateway_argocd_secrets", "");
    wait::until_true("that it is as it should be", SOON, || Ok(kept()? > 0.5))?;
    place.delete(&format!("serviceaccount {ACCOUNT} -n {}", place.namespace))?;
    apply(testbed, &[account(&place.namespace)])?;
    wait::until_true("another token", SOON, || Ok(token(&place.secret("cluster-gateway-argo-less")?)? != first))?;
    let values = format!("controllers.parts.argocd=true,controllers.argocd.namespace={}", place.namespace);
    let objects = rendered(testbed, ARGO, &values)?;
    none_idle(testbed, ARGO, &objects, mark, &events())?;
    place.running.stop()?;

    let without = ("secrets", "delete");
    let mut running = started_without(testbed, ARGO, &objects, without)?;
    stray(&place)?;
    wait::until_true("that it is missed", SOON, || is_refused_to(testbed, ARGO, without.1, without.0))?;
    place.secret("cluster-gateway-argo-less-gone")?;
    running.stop()?;
    grant(testbed, ARGO, &objects)?;
    place.running.restart_stopped()?;
    place.wait_gone("argo-less-gone")?;
    place.end(&["argo-less", "argo-less-gone"])
}

/// Creates a Secret of ours for a cluster that is not accepted.
fn stray(place: &Place<'_>) -> Result<()> {
    let left = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "cluster-gateway-argo-less-gone", "namespace": place.namespace,
            "labels": {"cluster.core.oam.dev/argocd-cluster": "argo-less-gone"}}});
    apply(place.testbed, &[left, cluster("argo-less-gone", false)])
}
