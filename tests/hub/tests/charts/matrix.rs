//! Values that people set, including each way to get a certificate.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use hub_tests::helm::{Chart, Helm};
use kit::pki::{Authority, Leaf};
use serde_json::{Value, json};

/// A flag in `extraArgs` that each chart sets, too.
pub(crate) const EXTRA: &str = "--log-level=warn";

/// The case whose hub is another API server than the one of the installation.
pub(crate) const ELSEWHERE: &str = "beside a Karmada elsewhere with policies";

/// The case whose agent also brings the member's credential.
pub(crate) const BRINGS: &str = "agent that joins and brings a credential";

/// Every case with its objects, or why one is not rendered. Each is a start of helm, and many tests
/// look at the same objects.
static RENDERED: OnceLock<Result<Vec<Rendered>, String>> = OnceLock::new();

/// A case and its objects.
pub(crate) type Rendered = (Case, Vec<Value>);

/// One set of values.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) chart: Chart,
    values: Value,
    more: &'static [&'static str],
    preset: bool,
}

/// All cases, the defaults first.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("defaults", json!({})),
        Case { preset: true, ..case("kubevela", json!({})) },
        case("cert-manager", json!({"tls": {"certManager": {"enabled": true}}})),
        Case { more: &["--api-versions=cert-manager.io/v1"], ..case("cert-manager is there", json!({})) },
        case(
            "an issuer",
            json!({"tls": {"certManager": {"enabled": true, "issuerRef": {"name": "corporate", "kind": "ClusterIssuer"}}}}),
        ),
        case(
            "an existing Secret",
            json!({"tls": {"existingSecret": "mine", "caBundle": Authority::new("mine").root_pem()}}),
        ),
        case("one replica", json!({"replicas": 1, "podDisruptionBudget": {"enabled": false}})),
        case("somebody else's APIService", json!({"apiService": {"create": false}})),
        case(
            "health",
            json!({"secretNamespace": "clusters", "featureGates": {"HealthinessCheck": true, "ClientIdentityPenetration": true}}),
        ),
        case("ocm", json!({"ocm": {"enabled": true}})),
        case("dialects", json!({"dialects": {"kcp": true, "karmada": {"enabled": true}}})),
        case("dialects that register", json!({"dialects": {"karmada": {"enabled": true, "register": true}},
            "tls": {"existingSecret": "mine", "caBundle": Authority::new("mine").root_pem()}})),
        case("beside a Karmada", json!({"dialects": {"karmada": {"enabled": true, "takeOver": true,
            "upstream": "https://karmada-aggregated-apiserver.karmada-system.svc", "upstreamSecret": "mine-karmada"}}})),
        case(ELSEWHERE, elsewhere()),
        case("the user server with policies", policies(&json!({"dialects": {"ocmUserServer": {"enabled": true, "port": 9192}}}))),
        case("controllers with policies", controllers(&json!({"watchNamespaces": ["fleet"], "removeClusters": true}))),
        case("controllers of everything with policies", controllers(&json!({
            "karmadaKubeconfigSecret": "mine-karmada", "execCommands": ["/plugins/login"], "allowInsecure": true,
            "nameTemplates": {"capi": "{namespace}.{name}"},
            "parts": {"managedServiceAccount": true},
            "clusterProfileProviders": [{"name": "cloud", "execConfig": {"command": "/plugins/cloud"}}],
            "sources": {"kubeconfig": true, "karmada": true, "kubefed": true, "ocm": true, "clusterProfileImport": true}}))),
        case("placement alone", json!({"controllers": {"enabled": true, "parts": {"placement": true}}})),
        case("works that are guarded", json!({"controllers": {"enabled": true, "parts": {"placement": true}, "workAdmission": true}})),
        case("placement with policies", controllers(&json!({"parts": {"placement": true}, "neverStandBy": ["placement"], "rivalNamespaces": ["open-cluster-management-hub"]}))),
        case("fleets of works and Argo CD with policies", controllers(&json!({"parts": {"replicaSets": true, "argocd": true},
            "neverStandBy": ["replica-sets"], "rolloutNeedsRules": true,
            "argocd": {"namespace": "default", "serviceAccount": "kube-system/deployer"}}))),
        case("delivery by one value", json!({"delivery": {"enabled": true}})),
        case("works and probes with policies", controllers(&json!({"parts": {"manifestworks": true, "availability": true}}))),
        case("profiles with policies", controllers(&json!({"parts": {"clusterProfile": true}}))),
        case("profiles of a gateway elsewhere", json!({
            "controllers": {"enabled": true, "parts": {"clusterProfile": true}, "clusterProfileNamespaces": ["fleet", "default"],
                "gatewayURL": "https://gateway.example:9443", "gatewayCA": Authority::new("mine").root_pem()}})),
        case("autoscaled", json!({"autoscaling": {"enabled": true, "minReplicas": 3, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60}})),
        case("policies", policies(&json!({"tunnel": {"server": {"enabled": true}}}))),
        case("policies with an embedded tunnel", policies(&json!({"tunnel": {"embedded": {"enabled": true}}}))),
        case("policies without peers", json!({"networkPolicy": {"enabled": true}, "tunnel": {"server": {"enabled": true}}})),
        case("much", much()),
    ]
    .into_iter()
    .chain(tunnel())
    .chain(agent())
    .collect()
}

/// All cases, rendered once for the namespace `vela-system`, with the files of their values below
/// the `directory` of the caller that comes first.
pub(crate) fn rendered(helm: &Helm, directory: &Path) -> Result<&'static [(Case, Vec<Value>)]> {
    let render = |case: Case| -> Result<(Case, Vec<Value>), String> {
        let objects = case.objects(helm, directory, "vela-system");
        let objects = objects.map_err(|error| format!("values: {}: {error:#}", case.name))?;
        Ok((case, objects))
    };
    let rendered = RENDERED.get_or_init(|| cases().into_iter().map(render).collect());
    rendered.as_deref().map_err(|error| anyhow!("{error}"))
}

/// Controllers that read Cluster API's objects, with more `values`.
fn controllers(values: &Value) -> Value {
    let mut values = values.clone();
    values["enabled"] = true.into();
    values["extraArgs"] = json!([EXTRA]);
    values["sources"]["capi"] = true.into();
    json!({"controllers": values, "metrics": {"annotations": true}, "networkPolicy": {"enabled": true}})
}

/// Gateways and controllers for Karmada's API server.
fn elsewhere() -> Value {
    let mut values = controllers(&json!({"sources": {"karmada": true}}));
    values["dialects"] = json!({"karmada": {"enabled": true, "kubeconfigSecret": "mine-kubeconfig",
        "upstream": "https://karmada-aggregated-apiserver.karmada-system.svc", "upstreamSecret": "mine-karmada"}});
    values
}

/// Network policies with a peer of each kind.
fn policies(values: &Value) -> Value {
    let mut values = values.clone();
    values["networkPolicy"] = json!({"enabled": true, "callers": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
        "agents": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "frontends": [{"podSelector": {"matchLabels": {"component": "kube-apiserver"}}}],
        "metrics": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]});
    values
}

/// The tunnel on the hub.
fn tunnel() -> Vec<Case> {
    let server = |listen: &Value, frontends: &Value| json!({"tunnel": {"server": {"enabled": true}, "agents": ["berlin", "osaka.prod"], "listen": listen, "frontends": frontends}});
    let hosts = json!({"hosts": ["hub.example.test", "192.0.2.7", "2001:db8::7"]});
    let generated = server(&hosts, &json!({}));
    let mut issued = generated.clone();
    issued["tls"] = json!({"certManager": {"enabled": true}});
    let issuer = json!({"hosts": ["hub.example.test"], "issuerRef": {"name": "public", "kind": "ClusterIssuer"}});
    let existing = server(
        &json!({"existingSecret": "mine-agents", "clientCASecret": "mine-agents-ca"}),
        &json!({"existingSecret": "mine-frontends", "existingClientSecret": "mine-gateway"}),
    );
    let mut much_of_it = server(
        &json!({"port": 9091, "clientCASecret": "mine-agents-ca", "service": {"type": "NodePort", "port": 443, "nodePort": 30443,
            "annotations": {"a": "b"}, "externalTrafficPolicy": "Local"}}),
        &json!({}),
    );
    let more = json!({"replicas": 3, "frontendPort": 9090, "adminPort": 9095, "drainTimeoutSeconds": 600,
        "image": {"repository": "example.test/tunnel-server", "tag": "1"}, "extraArgs": [EXTRA],
        "env": [{"name": "TUNNEL_SERVER_KEEPALIVE", "value": "5s"}], "podAnnotations": {"a": "b"},
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        much_of_it["tunnel"]["server"][key] = value.clone();
    }
    much_of_it["metrics"] =
        json!({"annotations": true, "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}}});
    let embedded = json!({"tunnel": {"embedded": {"enabled": true}, "agents": ["berlin"],
        "listen": {"clientCASecret": "mine-agents-ca", "service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"]}}}});
    let without_roles = json!({"hubClientCA": true, "followRoles": false});
    vec![
        case("tunnel-servers and agents of the hub without its roles", server(&without_roles, &json!({}))),
        case("tunnel-servers", generated),
        case("tunnel-servers and cert-manager", issued),
        case("tunnel-servers and an issuer", server(&issuer, &json!({}))),
        case("tunnel-servers and existing Secrets", existing),
        case("tunnel-servers and much", much_of_it),
        case("embedded", embedded),
        Case { preset: true, ..case("kubevela with the tunnel", json!({"tunnel": {"server": {"enabled": true}}})) },
        case("embedded with an issuer", json!({"tunnel": {"embedded": {"enabled": true}, "listen": issuer}})),
    ]
}

/// The agent on a member.
fn agent() -> Vec<Case> {
    let pem = Authority::new("servers").root_pem();
    let least = json!({"cluster": "berlin", "servers": ["hub.example.test:8091"]});
    let with = |more: &Value| {
        let mut values = least.clone();
        for (key, value) in more.as_object().into_iter().flatten() {
            values[key] = value.clone();
        }
        values
    };
    let pair = Authority::new("agents").issue(&Leaf::client("system:tunnel-agent:berlin"));
    let much = with(&json!({
        "servers": ["hub.example.test:8091", "[2001:db8::7]:443"], "serverName": "tunnel.vela-system.svc",
        "serverCA": {"secretKey": "server-ca.crt"}, "credential": {"existingSecret": "mine", "type": "certificate"},
        "allow": ["kubelet.example.test:10250", "10.0.0.0/8:443", "[2001:db8::/64]:443"], "apiServer": "[2001:db8::1]:6443", "links": 4,
        "proxy": {"secretKey": "proxy-url", "caPem": pem}, "image": {"repository": "example.test/agent", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}], "replicas": 3, "adminPort": 9093, "drainTimeoutSeconds": 600,
        "metrics": {"annotations": true, "podMonitor": {"enabled": true, "labels": {"release": "prometheus"}}},
        "log": {"format": "json", "level": "debug"}, "extraArgs": [EXTRA],
        "env": [{"name": "NO_PROXY", "value": "10.0.0.0/8"}], "serviceAccount": {"name": "agent", "annotations": {"a": "b"}},
        "podAnnotations": {"a": "b"}, "podLabels": {"team": "platform"}, "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {}}, "priorityClassName": "system-cluster-critical",
    }));
    let cases = [
        ("agent", with(&json!({"credential": {"existingSecret": "mine"}}))),
        ("agent with a token", with(&json!({"credential": {"token": "a.b-c_d"}, "serverCA": {"pem": pem}}))),
        (
            "agent with a certificate",
            with(&json!({"credential": {"type": "certificate", "certificate": pair.chain_pem, "key": pair.key_pem},
                "proxy": {"url": "http://proxy.example.test:3128"}})),
        ),
        (
            "agent with a policy",
            with(&json!({"credential": {"existingSecret": "mine"}, "networkPolicy": {"enabled": true,
                "metrics": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
                "egress": [{"ports": [{"port": 8091, "protocol": "TCP"}]}]}})),
        ),
        (
            "agent that joins",
            with(
                &json!({"register": {"enabled": true, "bootstrapSecret": "mine", "memberAPIURL": "https://berlin.example.test"},
                "serverCA": {"secretKey": "server-ca.crt"}}),
            ),
        ),
        (
            BRINGS,
            with(&json!({"register": {"enabled": true, "bootstrapSecret": "mine",
                "credential": {"serviceAccount": "cluster-gateway", "clusterRole": "view"}}})),
        ),
        ("agent and much", much),
    ];
    cases.into_iter().map(|(name, values)| Case { chart: Chart::Agent, ..case(name, values) }).collect()
}

fn case(name: &'static str, values: Value) -> Case {
    Case { name, chart: Chart::Gateway, values, more: &[], preset: false }
}

fn much() -> Value {
    json!({
        "image": {"repository": "example.test/gateway", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "port": 10250, "service": {"name": "door", "port": 443},
        "hostNetwork": true,
        "identityRules": [{"name": "guests", "source": {"group": "guests"}, "type": "StaticMappingIdentityExchanger",
            "target": {"user": "guest"}}],
        "access": [
            {"name": "berlin", "clusters": ["berlin"], "verbs": ["get"], "subjects": [{"kind": "User", "name": "jane"}]},
            {"name": "everywhere", "subjects": [
                {"kind": "Group", "name": "admins"}, {"kind": "ServiceAccount", "name": "bot", "namespace": "default"},
            ]},
        ],
        "metrics": {"annotations": true, "anonymous": true, "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}},
            "prometheusRule": {"enabled": true, "labels": {"release": "prometheus"}, "runbooks": "https://docs.example.test/operations"},
            "dashboard": {"enabled": true}},
        "tracing": {"endpoint": "collector.monitoring.svc:4317", "samplingRatePerMillion": 1_000_000, "parent": "none"},
        "log": {"format": "json", "level": "info,gateway=debug"},
        "shutdownDelaySeconds": 15, "drainTimeoutSeconds": 120, "livenessGracePeriodSeconds": 20,
        "extraArgs": [EXTRA],
        "env": [{"name": "CLUSTER_GATEWAY_SERVING_THREADS", "value": "2"}],
        "serviceAccount": {"name": "door", "annotations": {"a": "b"}},
        "podAnnotations": {"a": "b"}, "podLabels": {"team": "platform"},
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}}, "priorityClassName": "system-cluster-critical",
        "extraVolumes": [{"name": "plugins", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "plugins", "mountPath": "/plugins"}],
        "initContainers": [{"name": "plugins", "image": "plugins", "securityContext": {"allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}}, "volumeMounts": [{"name": "plugins", "mountPath": "/plugins"}]}],
    })
}

// === impl Case ===

impl Case {
    /// The arguments for helm, with the values in a file below `directory`.
    pub(crate) fn arguments(&self, directory: &Path) -> Result<Vec<String>> {
        let file = directory.join(format!("{}.json", self.name.replace(' ', "-")));
        std::fs::write(&file, self.values.to_string())?;
        let preset = self
            .preset
            .then(|| format!("--values={}", Chart::Gateway.directory().join("values-kubevela.yaml").display()));
        let own = [format!("--values={}", file.display())];
        Ok(preset.into_iter().chain(own).chain(self.more.iter().map(|&word| word.to_owned())).collect())
    }

    /// The objects that it renders, as release `door` in `namespace`.
    pub(crate) fn objects(&self, helm: &Helm, directory: &Path, namespace: &str) -> Result<Vec<Value>> {
        helm.with(self.chart).template("door", namespace, &self.arguments(directory)?)
    }
}
