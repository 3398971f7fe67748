//! The chart's autoscaler at work: the hub's own controller changes how many gateways there are, by
//! what their pods use. No kubelet runs these: what they use is told here, as metrics-server does.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;
use kit::member::{FakeMember, MemberOptions, Reply};
use libtest_mimic::Trial;
use tokio::runtime::Runtime;

use crate::fixture::{Fixture, Planes, on_hub};
use crate::installed::{Installed, RELEASE};

const NAMESPACE: &str = "scaled";
const PODS: [&str; 2] = ["gateway-a", "gateway-b"];
/// Of one pod; four fifths of it are the target, by the chart's default.
const REQUESTED: &str = "100m";
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
/// For the controller to start, and for a few of its rounds.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(
        fixture,
        "scaling::more gateways when those that run are busy, and no fewer than the chart says",
        scaled,
    )]
}

/// What tells of the pods' use. Ended on drop.
struct Metrics {
    server: FakeMember,
    _registered: Registered,
    _runtime: Runtime,
}

// === impl Metrics ===

impl Metrics {
    /// The hub sends whoever asks for metrics to it.
    fn start(planes: &Planes) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let serving = Leaf::server("metrics").san(format!("metrics.{NAMESPACE}.svc"));
        let server = runtime.block_on(FakeMember::start(MemberOptions { serving, ..MemberOptions::default() }));
        let resource = json!({"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": ["get", "list"]});
        let version = METRICS.trim_start_matches("/apis/");
        let served =
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]});
        server.on(METRICS, move |_| Reply::json(200, &served));
        let port = server.address().port();
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics", "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
        let spec = json!({"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
            "versionPriority": 100, "caBundle": BASE64.encode(server.ca_pem()),
            "service": {"name": "metrics", "namespace": NAMESPACE, "port": port}});
        let registered = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec});
        planes.hub.apply(&[service, registered])?;
        Ok(Self { server, _registered: Registered(planes.hub.server.kubectl()), _runtime: runtime })
    }

    /// From now on each pod uses so much.
    fn used(&self, cpu: &str) {
        let usage = json!([{"name": RELEASE, "usage": {"cpu": cpu, "memory": "1Mi"}}]);
        let of = |name| {
            json!({"metadata": {"name": name, "namespace": NAMESPACE}, "window": "10s",
            "timestamp": "2026-01-01T00:00:00Z", "containers": usage})
        };
        let list = json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
            "items": PODS.map(of)});
        self.server.on(&format!("{METRICS}/namespaces/{NAMESPACE}/pods"), move |_| Reply::json(200, &list));
    }
}

/// An API without a server is in the way of everybody who asks the hub what it serves.
struct Registered(Kubectl);

impl Drop for Registered {
    fn drop(&mut self) {
        drop(self.0.ok("delete apiservice v1beta1.metrics.k8s.io --ignore-not-found"));
    }
}

/// Pods of the Deployment, as they are once a kubelet runs them.
fn run(planes: &Planes) -> Result<()> {
    let kubectl = planes.hub.server.kubectl();
    let text = kubectl.ok(&format!("get deployment {RELEASE} -n {NAMESPACE} -o json"))?;
    let deployment: Value = serde_json::from_str(&text)?;
    let template = &deployment["spec"]["template"];
    let long_ago = "2020-01-01T00:00:00Z";
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": long_ago}]);
    let status = json!({"status": {"phase": "Running", "startTime": long_ago, "conditions": ready}}).to_string();
    for name in PODS {
        let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": template["metadata"]["labels"]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
        kubectl.apply(&pod.to_string())?;
        let words = ["patch", "pod", name, "-n", NAMESPACE, "--subresource=status", "-p", &status];
        kubectl.args(words).run()?.success()?;
    }
    Ok(())
}

fn scaled(planes: &Planes) -> Result<()> {
    let kubectl = planes.hub.server.kubectl();
    let release = Installed { planes, namespace: NAMESPACE };
    let values = format!("--set=autoscaling.enabled=true,resources.requests.cpu={REQUESTED}");
    release.helm("install", &[values])?;
    run(planes)?;
    let metrics = Metrics::start(planes)?;
    metrics.used("80m");
    let autoscaler = planes.start_autoscaler()?;
    for (cpu, replicas) in [("80m", "2"), ("200m", "5")] {
        metrics.used(cpu);
        let path = "jsonpath={.spec.replicas}";
        let scaled = || Ok(kubectl.ok(&format!("get deployment {RELEASE} -n {NAMESPACE} -o {path}"))? == replicas);
        wait::until_true(&format!("{replicas} gateways, at {cpu} each"), LIMIT, scaled).with_context(|| {
            kubectl.ok(&format!("describe hpa -n {NAMESPACE}")).unwrap_or_else(|error| error.to_string())
        })?;
    }
    drop((autoscaler, metrics));
    kubectl.ok(&format!("delete pods --all -n {NAMESPACE} --force --grace-period=0"))?;
    release.uninstall()
}
