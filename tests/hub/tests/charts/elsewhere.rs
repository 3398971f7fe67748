//! Next to a Karmada as it is installed: its API server runs no pods, and the cluster that runs
//! them is not the gateway's hub.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::hub::{Hub, SECRET_NAMESPACE as NAMESPACE};
use hub_tests::karmada::Karmada;
use hub_tests::kubectl::Kubectl;
use hub_tests::page;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, on_hub};
use crate::release::Release;

const PAGE: &str = include_str!("../../../../docs/dialects.md");
const NAME: &str = "beside";
const DEPLOYMENT: &str = "beside-cluster-gateway";
const BERLIN: &str = "berlin";
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
/// Time for the other API server to check an API again.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        on_hub(fixture, "elsewhere::a gateway of Karmada's API server, on Karmada's host cluster", works),
        on_hub(fixture, "elsewhere::what would be on the host cluster is refused", refused),
    ]
}

/// The YAML of the section that contains `words`.
fn block(words: &str) -> Result<&'static str> {
    page::block(page::below(PAGE, "### Beside a Karmada")?, "yaml", words)
}

fn works(planes: &Planes) -> Result<()> {
    let (plane, karmada) = planes.start_karmada("karmada-elsewhere")?;
    let values = secrets(planes, &plane, &karmada)?;
    let release = Release::install(planes, (NAME, DEPLOYMENT, DEPLOYMENT), &values)?;
    let manifest = planes.helm.args(["get", "manifest", NAME, "-n", NAMESPACE]).run()?.success()?;
    for kind in ["APIService", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"] {
        ensure!(!manifest.contains(&format!("\nkind: {kind}\n")), "{kind} on the host cluster: {manifest}");
    }
    let gateway = release.run(&release.workload()?)?;
    let tried = led_to(planes, &plane, release.port).and_then(|()| served(planes, &plane, &karmada));
    // Before the gateway ends: discovery requests every API that is registered.
    plane.server.delete("apiservice v1alpha1.cluster.karmada.io")?;
    tried.with_context(|| karmada.log_tail())?;
    drop(gateway);
    release.uninstall()
}

/// Creates the Secrets that the page requires; returns the page's values.
fn secrets(planes: &Planes, plane: &Hub, karmada: &Karmada) -> Result<Vec<String>> {
    let kubeconfig = plane.server.kubectl().ok("config view --raw --flatten")?;
    let authority = std::fs::read_to_string(karmada.authority_file())?;
    let secret = |name: &str, data: Value| {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
    };
    let front_proxy = json!({"ca.crt": authority, "tls.crt": plane.front_proxy.chain_pem,
        "tls.key": plane.front_proxy.key_pem});
    planes.hub.apply(&[
        secret("karmada-kubeconfig", json!({"kubeconfig": kubeconfig})),
        secret("karmada-front-proxy", front_proxy),
    ])?;
    let file = planes.directory.join("beside.yaml");
    let upstream = format!("https://{}", karmada.address());
    let values = block("kubeconfigSecret")?;
    let told = "https://karmada-aggregated-apiserver.karmada-system.svc";
    ensure!(values.contains(told), "{values}");
    std::fs::write(&file, values.replace(told, &upstream))?;
    Ok(vec![format!("--values={}", file.display())])
}

/// The commands of the notes, unchanged, and the APIService of the page.
fn led_to(planes: &Planes, plane: &Hub, port: u16) -> Result<()> {
    let notes = planes.helm.args(["get", "notes", NAME, "-n", NAMESPACE]).run()?.success()?;
    let commands = page::commands(&notes);
    let [kubeconfig, namespace, service, bundle] = &commands[..] else { bail!("{notes}") };
    let directory = planes.directory.join("elsewhere");
    std::fs::create_dir_all(&directory)?;
    run(planes, &directory, kubeconfig)?;
    // The namespace exists already: this Karmada's own Service is in it.
    ensure!(namespace.ends_with(&format!("create namespace {NAMESPACE}")), "{namespace}");
    // The gateway has no address in the host cluster's network.
    let host = format!("{DEPLOYMENT}.{NAMESPACE}.svc");
    ensure!(service.contains(&format!("--external-name={host} --tcp={port}")), "{service}");
    run(planes, &directory, &service.replace(&host, "localhost"))?;
    let bundle = run(planes, &directory, bundle)?;
    ensure!(BASE64.decode(bundle.trim())?.starts_with(b"-----BEGIN CERTIFICATE"), "{bundle}");
    let manifest = block("name: cluster-gateway, namespace")?;
    let (head, _) = manifest.split_once("caBundle: ").context("no caBundle")?;
    let own = format!("name: {DEPLOYMENT}, namespace: {NAMESPACE}, port: {port}");
    let head = head.replace("name: cluster-gateway, namespace: vela-system, port: 9443", &own);
    ensure!(head.contains(&own), "{head}");
    plane.server.apply_text(&format!("{head}caBundle: {bundle}\n"))?;
    plane.server.wait_for("apiservice v1alpha1.cluster.karmada.io", "Available", LIMIT)
}

fn run(planes: &Planes, directory: &Path, line: &str) -> Result<String> {
    planes.hub.server.kubectl().shell(line)?.directory(directory).run()?.success()
}

/// Checks that a member is reached by Karmada's path and the Secrets of Karmada's API server, and
/// that Karmada's own server answers everything else in the group.
fn served(planes: &Planes, plane: &Hub, karmada: &Karmada) -> Result<()> {
    let admin: Kubectl = plane.server.kubectl();
    plane.register_member(BERLIN, &MemberSecret::with_certificate(&planes.member, planes.member.admin()))?;
    let uid = planes.member.read("namespace default")?["metadata"]["uid"].clone();
    let path = format!("{CLUSTERS}/{BERLIN}/proxy/api/v1/namespaces/default");
    wait::until("the member to answer", Duration::from_secs(30), || {
        let found = plane.server.raw(&path)?;
        ensure!(found["metadata"]["uid"] == uid, "{found}");
        Ok(())
    })?;
    // The host cluster's own clusters are unknown to this gateway.
    let unknown = admin.args(["get", "--raw", &format!("{CLUSTERS}/member/proxy/version")]).run()?;
    ensure!(unknown.status != 0, "{unknown:?}");
    let spec = json!({"syncMode": "Push", "apiEndpoint": planes.member.url()});
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": BERLIN}, "spec": spec});
    admin.apply(&cluster.to_string()).with_context(|| karmada.log_tail())?;
    let listed = admin.ok("get clusters.cluster.karmada.io -o name")?;
    ensure!(listed.trim() == format!("cluster.cluster.karmada.io/{BERLIN}"), "{listed}");
    Ok(())
}

fn refused(planes: &Planes) -> Result<()> {
    let beside = "dialects.karmada.enabled=true,dialects.karmada.kubeconfigSecret=k,\
                  dialects.karmada.upstream=https://karmada.example,dialects.karmada.upstreamSecret=mine";
    let render = |values: &str| planes.helm.template("door", NAMESPACE, &[format!("--set={values}")]);
    render(beside)?;
    for (values, word) in [
        ("dialects.karmada.kubeconfigSecret=k", "has no effect without dialects.karmada.enabled"),
        (
            "dialects.karmada.enabled=true,dialects.karmada.kubeconfigSecret=k",
            "has no effect without dialects.karmada.upstream",
        ),
        (&format!("{beside},ocm.enabled=true"), "excludes ocm.enabled"),
        (&format!("{beside},tunnel.embedded.enabled=true"), "excludes tunnel.embedded.enabled"),
        (&format!("{beside},delivery.enabled=true"), "excludes"),
        (
            &format!("{beside},controllers.enabled=true,controllers.parts.argocd=true"),
            "excludes controllers.parts.argocd",
        ),
        (
            &format!(
                "{beside},controllers.enabled=true,controllers.sources.karmada=true,controllers.removeClusters=true"
            ),
            "excludes controllers.removeClusters",
        ),
        (
            &format!("{beside},access[0].name=a,access[0].subjects[0].kind=User,access[0].subjects[0].name=a"),
            "excludes access",
        ),
    ] {
        let told = format!("{:#}", render(values).err().with_context(|| format!("{values} is rendered"))?);
        ensure!(told.contains(word), "{values}: {told}");
    }
    Ok(())
}
