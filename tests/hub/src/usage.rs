//! The resource usage of pods, as a metrics server reports it.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::jiff::Timestamp;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::pki::Leaf;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::control_plane::ApiServer;
use crate::kubectl::Kubectl;

const API: &str = "/apis/metrics.k8s.io/v1beta1";
const SERVICE: &str = "metrics";

/// A metrics server. Ended on drop.
pub struct Usage {
    server: FakeMember,
    namespace: String,
    _registered: Registered,
    _runtime: Runtime,
}

// === impl Usage ===

impl Usage {
    /// Makes the hub, which is on this machine, send requests for metrics here, by a Service in
    /// `namespace`.
    pub fn start(hub: &ApiServer, namespace: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let serving = Leaf::server(SERVICE).san(format!("{SERVICE}.{namespace}.svc"));
        let server = runtime.block_on(FakeMember::start(MemberOptions { serving, ..MemberOptions::default() }));
        let resource = json!({"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics",
            "verbs": ["get", "list"]});
        let version = API.trim_start_matches("/apis/");
        let served =
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]});
        server.on(API, move |_| Reply::json(200, &served));
        let port = server.address().port();
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
        let spec = json!({"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
            "versionPriority": 100, "caBundle": BASE64.encode(server.ca_pem()),
            "service": {"name": SERVICE, "namespace": namespace, "port": port}});
        let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec});
        let registered = Registered { kubectl: hub.kubectl(), namespace: namespace.to_owned() };
        for object in [service, api] {
            registered.kubectl.apply(&object.to_string())?;
        }
        Ok(Self { server, namespace: namespace.to_owned(), _registered: registered, _runtime: runtime })
    }

    /// Sets the CPU usage of these pods' `container` as of now: an autoscaler ignores samples from
    /// before a young pod was ready.
    pub fn tell(&self, container: &str, pods: &[(&str, &str)]) {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let of = |(name, cpu): &(&str, &str)| {
            let usage = json!([{"name": container, "usage": {"cpu": cpu, "memory": "1Mi"}}]);
            json!({"metadata": {"name": name, "namespace": self.namespace}, "window": "1s",
                "timestamp": now, "containers": usage})
        };
        let items: Vec<_> = pods.iter().map(of).collect();
        let list = json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
            "items": items});
        self.server.on(&format!("{API}/namespaces/{}/pods", self.namespace), move |_| Reply::json(200, &list));
    }
}

/// Removed on drop: an API without a server is in the way of all clients that use the hub's
/// discovery.
struct Registered {
    kubectl: Kubectl,
    namespace: String,
}

impl Drop for Registered {
    fn drop(&mut self) {
        drop(self.kubectl.ok("delete apiservice v1beta1.metrics.k8s.io --ignore-not-found"));
        drop(self.kubectl.ok(&format!("delete service {SERVICE} -n {} --ignore-not-found", self.namespace)));
    }
}
