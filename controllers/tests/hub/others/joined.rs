//! A cluster that Karmada's own command joins to a control plane elsewhere, as the command writes
//! it.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use serde_json::{Value, json};

use super::{is_reachable, value};
use crate::fixture::{Running, SOON, definition, secret_field, wait_gone, wait_secret};

const PLACE: &str = "joined-clusters";
const NAME: &str = "joined";
/// Where the command keeps credentials.
const SECRETS: &str = "karmada-cluster";

pub fn joins_and_leaves(testbed: &Testbed) -> Result<()> {
    let mut plane = testbed.start_api_server("karmada-plane")?;
    plane.wait_ready()?;
    plane.apply(&[definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster")])?;
    plane.kubectl().ok("wait --for=condition=Established crd/clusters.cluster.karmada.io --timeout=30s")?;
    let tool = Kubectl {
        binary: provide(Tool::Karmadactl)?,
        kubeconfig: plane.kubectl().kubeconfig,
        cache: testbed.directory("karmadactl-joins")?,
    };
    let kubeconfig = format!("--karmada-kubeconfig={}", tool.kubeconfig.display());
    let mut controllers = Running::start(testbed, PLACE, &["--enable=karmada", &kubeconfig])?;

    let member = testbed.member.server.kubectl().kubeconfig;
    let place = "--cluster-region=eu --cluster-zones=eu-1 --cluster-provider=metal";
    let joined = tool.ok(&format!("join {NAME} --cluster-kubeconfig={} {place}", member.display()))?;
    ensure!(joined.contains("is joined successfully"), "{joined}");
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
    tool.ok(&format!("unjoin {NAME}"))?;
    wait_gone(testbed, PLACE, NAME)?;
    controllers.stop()
}

fn decoded(secret: &Value, key: &str) -> Result<String> {
    let data = secret["data"][key].as_str().with_context(|| format!("no {key}"))?;
    Ok(String::from_utf8(STANDARD.decode(data)?)?)
}
