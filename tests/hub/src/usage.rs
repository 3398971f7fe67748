//! What pods and nodes use, told as a metrics server tells it.

use std::time::Duration;

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
use crate::wait;

const API: &str = "/apis/metrics.k8s.io/v1beta1";
const SERVICE: &str = "metrics";
/// Time for an API server to find out what this one serves.
const LIMIT: Duration = Duration::from_mins(1);

/// A metrics server. Ended on drop.
pub struct Usage {
    /// First: an API without a server is in the way of everybody who asks what is served.
    _registered: Registered,
    server: FakeMember,
    namespace: String,
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
        let resource = |name: &str, kind: &str, is_namespaced: bool| json!({"name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["get", "list"]});
        let resources = [resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)];
        let version = API.trim_start_matches("/apis/");
        let served =
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
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
        hub.apply(&[service, api])?;
        // helm asks what is served.
        wait::until("the API of metrics", LIMIT, || hub.serves("pods.metrics.k8s.io"))?;
        Ok(Self { _registered: registered, server, namespace: namespace.to_owned(), _runtime: runtime })
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

    /// These nodes use so much CPU time now.
    pub fn tell_nodes(&self, nodes: &[(&str, &str)]) {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let of = |(name, cpu): &(&str, &str)| {
            json!({"metadata": {"name": name}, "window": "1s", "timestamp": now,
                "usage": {"cpu": cpu, "memory": "1Mi"}})
        };
        let items: Vec<_> = nodes.iter().map(of).collect();
        let list = json!({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
            "items": items});
        self.server.on(&format!("{API}/nodes"), move |_| Reply::json(200, &list));
    }
}

/// What a control plane has of a metrics server; taken away on drop.
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
