//! The chart's autoscaler at work: the hub's own controller changes the number of gateways by their
//! pods' resource usage. No kubelet runs these: the test reports their usage, like metrics-server.

use hub_tests::prelude::*;
use hub_tests::usage::Usage;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, namespace, on_hub};
use crate::installed::{Installed, RELEASE};

const NAMESPACE: &str = "scaled";
const PODS: [&str; 2] = ["gateway-a", "gateway-b"];
/// CPU request of one pod; by the chart's default, the target is four fifths of it.
const REQUESTED: &str = "100m";
/// Time for the controller to start, and for a few of its rounds.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(
        fixture,
        "scaling::more gateways when those that run are busy, and no fewer than the chart says",
        scaled,
    )]
}

/// Creates pods of the Deployment, with the status that a kubelet would report.
fn run(planes: &Planes) -> Result<()> {
    let hub = &planes.hub.server;
    let template = hub.field(&format!("deployment {RELEASE} -n {NAMESPACE}"), "/spec/template")?;
    let long_ago = "2020-01-01T00:00:00Z";
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": long_ago}]);
    let status = json!({"status": {"phase": "Running", "startTime": long_ago, "conditions": ready}});
    for name in PODS {
        let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": template["metadata"]["labels"]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
        hub.create(&[pod])?;
        hub.patch(&format!("pod {name} -n {NAMESPACE} --subresource=status"), &status)?;
    }
    Ok(())
}

fn scaled(planes: &Planes) -> Result<()> {
    let hub = &planes.hub.server;
    let release = Installed { planes, namespace: NAMESPACE };
    let values = [format!("--set=autoscaling.enabled=true,resources.requests.cpu={REQUESTED}")];
    let refused = release.helm("install", &values).err().context("installed without a metrics server")?;
    ensure!(format!("{refused:#}").contains("this hub has no API metrics.k8s.io/v1beta1"), "{refused:#}");
    hub.create(&[namespace(NAMESPACE)])?;
    let usage = Usage::start(&planes.hub.server, NAMESPACE)?;
    release.helm("install", &values)?;
    let replicas = || hub.text(&format!("deployment {RELEASE} -n {NAMESPACE}"), "/spec/replicas");
    run(planes)?;
    let used = |cpu| usage.tell(RELEASE, &PODS.map(|pod| (pod, cpu)));
    used("80m");
    let autoscaler = planes.start_autoscaler()?;
    for (cpu, expected) in [("80m", "2"), ("200m", "5")] {
        used(cpu);
        let scaled = || Ok(replicas()? == expected);
        wait::until_true(&format!("{expected} gateways, at {cpu} each"), LIMIT, scaled).with_context(|| {
            hub.kubectl().ok(&format!("describe hpa -n {NAMESPACE}")).unwrap_or_else(|error| error.to_string())
        })?;
    }
    drop(autoscaler);
    let upgrade = |set: &str| release.helm("upgrade", &["--reuse-values".to_owned(), format!("--set={set}")]);
    upgrade("autoscaling.enabled=true")?;
    ensure!(replicas()? == "5", "an upgrade left {} of 5 gateways", replicas()?);
    upgrade("autoscaling.enabled=false,replicas=4")?;
    upgrade("autoscaling.enabled=true")?;
    ensure!(replicas()? == "4", "turning it on left {} of 4 gateways", replicas()?);
    hub.kubectl().ok(&format!("delete pods --all -n {NAMESPACE} --force --grace-period=0"))?;
    release.uninstall()
}
