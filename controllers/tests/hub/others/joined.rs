//! A cluster that Karmada's own command joins to a control plane elsewhere. The object is as the
//! command writes it, and Karmada's own server stores it, without a `CustomResourceDefinition`.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::control_plane::ApiServer;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::karmada;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use serde_json::{Value, json};

use super::{is_reachable, value};
use crate::fixture::{Running, SOON, secret_field, wait_end, wait_gone, wait_secret};
use crate::rights::rendered;

const PLACE: &str = "joined-clusters";
const NAME: &str = "joined";
/// Values of the chart on Karmada's host cluster.
const VALUES: &str = "controllers.sources.karmada=true,secretNamespace=vela-system,dialects.karmada.enabled=true,\
                      dialects.karmada.kubeconfigSecret=k,dialects.karmada.upstream=https://karmada.example,\
                      dialects.karmada.upstreamSecret=m";
/// The namespace in which the command stores credentials.
const SECRETS: &str = "karmada-cluster";

pub fn joins_and_leaves(testbed: &Testbed) -> Result<()> {
    let (plane, karmada) = testbed.start_karmada_apart("karmada-plane")?;
    let plane = &plane.server;
    ensure!(plane.read("crd clusters.cluster.karmada.io")?.is_null(), "the group is not Karmada's own server's");
    let tool = Kubectl {
        binary: provide(Tool::Karmadactl)?,
        kubeconfig: plane.kubectl().kubeconfig,
        cache: testbed.directory("karmadactl-joins")?,
    };
    joined(testbed, plane, &tool).and_then(|()| as_installed(testbed, plane, &tool)).with_context(|| karmada.log_tail())
}

fn joined(testbed: &Testbed, plane: &ApiServer, tool: &Kubectl) -> Result<()> {
    let kubeconfig = format!("--karmada-kubeconfig={}", tool.kubeconfig.display());
    let mut controllers = Running::start(testbed, PLACE, &["--enable=karmada", &kubeconfig])?;

    let member = testbed.member.server.kubectl().kubeconfig;
    let place = "--cluster-region=eu --cluster-zones=eu-1 --cluster-provider=metal";
    let words = format!("join {NAME} --cluster-kubeconfig={} {place}", member.display());
    karmada::has_joined(&tool.args(words.split(' ')).run()?, NAME)?;
    wait_secret(testbed, PLACE, NAME)?;
    ensure!(value(testbed, PLACE, NAME, "endpoint")? == testbed.member.server.url());
    let secret = plane.read(&format!("secret {NAME} -n {SECRETS}"))?;
    ensure!(value(testbed, PLACE, NAME, "token")? == decoded(&secret, "token")?, "another token");
    ensure!(value(testbed, PLACE, NAME, "ca.crt")? == decoded(&secret, "caBundle")?, "another CA");
    let label =
        |name: &str| secret_field(testbed, PLACE, NAME, &format!("/metadata/labels/{}", name.replace('/', "~1")));
    for (name, expected) in [
        ("topology.kubernetes.io/region", "eu"),
        ("topology.kubernetes.io/zone", "eu-1"),
        ("cluster.core.oam.dev/provider", "metal"),
    ] {
        let found = label(name)?;
        ensure!(found == expected, "{name}: {found:?}");
    }
    is_reachable(testbed, PLACE, NAME)?;

    let token = testbed.member.create_admin("karmada-joined")?;
    let rotated = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME, "namespace": SECRETS},
        "stringData": {"token": token}});
    plane.apply(&[rotated])?;
    wait::until_true("the new token", SOON, || Ok(value(testbed, PLACE, NAME, "token")? == token))?;
    is_reachable(testbed, PLACE, NAME)?;

    // Of the member it takes nothing away: other tests have theirs there.
    karmada::has_left(&tool.args(["unjoin", NAME]).run()?)?;
    wait_gone(testbed, PLACE, NAME)?;
    controllers.stop()
}

/// As the chart runs the controllers on Karmada's host cluster: Karmada's API server is their hub,
/// and the chart grants nothing on the host cluster.
fn as_installed(testbed: &Testbed, plane: &ApiServer, tool: &Kubectl) -> Result<()> {
    const MOUNTED: &str = "--kubeconfig=/etc/cluster-gateway-controllers/hub/kubeconfig";
    let objects = rendered(testbed, "joined-host", VALUES)?;
    let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    ensure!(kinds.iter().all(|kind| !kind.contains("Role") && !kind.contains("Policy")), "{kinds:?}");
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("a Deployment")?;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("arguments")?;
    let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    ensure!(arguments.contains(&MOUNTED), "{arguments:?}");
    let rest: Vec<&str> = arguments.into_iter().filter(|argument| *argument != MOUNTED).collect();
    let mut controllers = Running::as_user(SECRET_NAMESPACE, &tool.kubeconfig, &rest)?;

    let member = testbed.member.server.kubectl().kubeconfig;
    tool.ok(&format!("join {NAME} --cluster-kubeconfig={}", member.display()))?;
    let secret = wait::until("its Secret on Karmada's API server", SOON, || {
        let secret = plane.read(&format!("secret {NAME} -n {SECRET_NAMESPACE}"))?;
        ensure!(!secret.is_null(), "there is none");
        Ok(secret)
    })?;
    ensure!(decoded(&secret, "endpoint")? == testbed.member.server.url(), "{}", secret["metadata"]);
    let here = testbed.hub.server.read(&format!("secret {NAME} -n {SECRET_NAMESPACE}"))?;
    ensure!(here.is_null(), "it is written on the host cluster");
    tool.ok(&format!("unjoin {NAME}"))?;
    wait_end(plane, &format!("secret {NAME} -n {SECRET_NAMESPACE}"))?;
    controllers.stop()
}

fn decoded(secret: &Value, key: &str) -> Result<String> {
    let data = secret["data"][key].as_str().with_context(|| format!("no {key}"))?;
    Ok(String::from_utf8(STANDARD.decode(data)?)?)
}
