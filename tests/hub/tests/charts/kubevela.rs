//! A release with KubeVela's preset: its names and arguments, its users' routes, and `patch` on the
//! APIService that its chart leaves.

use gateway::patch;
use hub_tests::control_plane::ApiServer;
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, on_hub};
use crate::release::{API_SERVICE, AVAILABLE, Release};

const ACCOUNT: &str = "kubevela-vela-core";
const DEPLOYMENT: &str = "kubevela-cluster-gateway";
const SERVICE: &str = "kubevela-cluster-gateway-service";
const TLS_SECRET: &str = "kubevela-vela-core-cluster-gateway-tls-v2";
/// The placeholder for the CA: a line feed in base64.
const PLACEHOLDER: &str = "Cg==";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "kubevela::its preset works, and patch replaces the placeholder CA", preset)]
}

fn preset(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let hub = &planes.hub.server;
    let token = hub.service_account_token(NAMESPACE, ACCOUNT)?; // KubeVela's chart makes this account
    let values = format!("--values={}", Chart::Gateway.directory().join("values-kubevela.yaml").display());
    let release = Release::install(planes, ("gateway", DEPLOYMENT, SERVICE), &[values])?;
    let right = release.replace_api_service(&json!({"caBundle": PLACEHOLDER}))?["spec"]["caBundle"].take();

    let workload = release.workload()?;
    let labels = &workload.deployment["spec"]["template"]["metadata"]["labels"];
    ensure!(labels["app.kubernetes.io/name"] == "vela-core-cluster-gateway", "{labels}");
    ensure!(workload.args.iter().any(|word| word == "apiserver"), "{:?}", workload.args);
    let _gateway = release.run(&workload)?;
    let asked = hub.client(Some(hub.admin())).get("/apis/cluster.core.oam.dev/v1alpha1", &[])?;
    ensure!(asked.status != StatusCode::OK, "the gateway is there, but the hub cannot trust it yet: {}", asked.text());

    let patcher = patcher(hub)?;
    patch(&patcher)?;
    ensure!(release.api_service()?["spec"]["caBundle"] == right, "another CA than the chart's");
    release.wait_condition(AVAILABLE)?;
    use_as_kubevela(planes, &release, workload.flag("--tls-cert-file").context("no certificate")?, token)?;
    patch_again(&release, &patcher, &right)?;
    release.uninstall()
}

/// Runs `patch` like a Job of KubeVela's chart, but with a kubeconfig.
fn patch(kubeconfig: &str) -> Result<()> {
    let words =
        ["patch", "--secret-namespace", NAMESPACE, "--secret-name", TLS_SECRET, "--timeout=30s", "--kubeconfig"];
    let args = patch::Args::parse_from(words.iter().chain([&kubeconfig]).map(Into::into).collect())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(patch::apply(&args))
}

/// A correct CA stays untouched; skipped verification, which the hub refuses next to a CA, is
/// removed in its favour.
fn patch_again(release: &Release<'_>, patcher: &str, right: &Value) -> Result<()> {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    release.patch_api_service(&json!({"insecureSkipTLSVerify": true, "caBundle": null}))?;
    patch(patcher)?;
    let patched = release.api_service()?;
    ensure!(patched["spec"]["caBundle"] == *right, "{patched}");
    ensure!(patched["spec"]["insecureSkipTLSVerify"] != true, "{patched}");
    let generation = patched["metadata"]["managedFields"].clone();
    patch(patcher)?;
    let again = release.api_service()?;
    ensure!(again["metadata"]["managedFields"] == generation || version(&again) == version(&patched), "{again}");
    Ok(())
}

/// A user of KubeVela goes through the hub, its controller directly to the gateway with the CA of
/// the Secret.
fn use_as_kubevela(planes: &Planes, release: &Release<'_>, certificate: &str, token: String) -> Result<()> {
    let client = planes.hub.server.authority().issue(&Leaf::client("vela-user").group("kubevela:client"));
    let client = Credential::Certificate(client.write_to(&planes.directory, "vela-user")?);
    planes.through_hub("vela-user", client)?.ok("get namespace default -o name")?;
    let authority = std::path::Path::new(certificate).with_file_name("ca");
    let controller = planes.through_gateway("controller", release.port, authority, Credential::Token(token))?;
    controller.ok(&format!("get namespace default -o name --tls-server-name={SERVICE}")).map(drop)
}

/// A kubeconfig of a user with exactly the rights that `patch` needs.
fn patcher(hub: &ApiServer) -> Result<String> {
    let token = hub.service_account_token(NAMESPACE, "patcher")?;
    let patcher = (NAMESPACE, "patcher");
    let secret =
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [TLS_SECRET], "verbs": ["get"]}]);
    hub.grant("patcher", Some(NAMESPACE), &secret, patcher)?;
    let service = json!([{"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"],
        "resourceNames": [API_SERVICE], "verbs": ["get", "patch"]}]);
    hub.grant("patcher", None, &service, patcher)?;
    Ok(hub.kubeconfig("patcher", Credential::Token(token))?.to_string_lossy().into_owned())
}
