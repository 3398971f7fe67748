//! Values that people set, each way to get a certificate among them.

use std::path::Path;

use anyhow::Result;
use hub_tests::helm::{Helm, chart};
use kit::pki::Authority;
use serde_json::{Value, json};

/// One set of values.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    values: Value,
    more: &'static [&'static str],
    preset: bool,
}

/// All of them, the defaults first.
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
        case("much", much()),
    ]
}

fn case(name: &'static str, values: Value) -> Case {
    Case { name, values, more: &[], preset: false }
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
        "metrics": {"annotations": true, "anonymous": true, "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}}},
        "log": {"format": "json", "level": "info,gateway=debug"},
        "shutdownDelaySeconds": 15, "drainTimeoutSeconds": 120,
        "extraArgs": ["--dial-timeout=5s"],
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
    /// What to give helm, with the values in a file below `directory`.
    pub(crate) fn arguments(&self, directory: &Path) -> Result<Vec<String>> {
        let file = directory.join(format!("{}.json", self.name.replace(' ', "-")));
        std::fs::write(&file, self.values.to_string())?;
        let preset = self.preset.then(|| format!("--values={}", chart().join("values-kubevela.yaml").display()));
        let own = [format!("--values={}", file.display())];
        Ok(preset.into_iter().chain(own).chain(self.more.iter().map(|&word| word.to_owned())).collect())
    }

    /// The objects it renders to, as release `door` in `namespace`.
    pub(crate) fn objects(&self, helm: &Helm, directory: &Path, namespace: &str) -> Result<Vec<Value>> {
        helm.template("door", namespace, &self.arguments(directory)?)
    }
}
