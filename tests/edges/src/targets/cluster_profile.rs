//! Any `ClusterProfile`: a cluster whose credential comes from the operator's program, or a refusal
//! that repeats no value. The providers' file is any, too.
//!
//! Input: changes of a good profile and of a good file (`sources::changed`), and the input itself
//! as the file.

use register::cluster_profile::{Providers, is_own, read};
use register::reading::Reading;
use serde_json::{Value, json};

use crate::sources::{PROGRAM, PROVIDERS_VARIABLE, changed, hold, rules};

pub const WORDS: &[&str] = &[
    "\n/object/profile/",
    "\n/object/file/providers/0/",
    "metadata/labels/x-k8s.io~1cluster-manager ",
    "spec/clusterManager/name ",
    "cluster-gateway",
    "status/accessProviders ",
    "status/credentialProviders ",
    "status/accessProviders/0/cluster/",
    "server ",
    "https://",
    "http://",
    "169.254.169.254",
    "gateway:9443",
    "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/a/proxy",
    "proxy-url http://u:~secret~@p:1",
    "certificate-authority-data fnNlY3JldH4=",
    "insecure-skip-tls-verify true",
    "extensions ",
    "extensions/0/name ",
    "extensions/0/extension ",
    "clusterprofiles.multicluster.x-k8s.io/exec/additional-args",
    "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs",
    "client.authentication.k8s.io/exec",
    "[\"~secret~\"]",
    "{\"LD_PRELOAD\": \"~secret~\"}",
    "execConfig/command ",
    "execConfig/env ",
    "profileSourcedCLIArgsPolicy ",
    "Append",
    "IfNotExists",
    "Replace",
    "Ignore",
    "~secret~",
    "null",
    "{}",
    "[]",
];

fn good() -> Value {
    json!({
        "object": {
            "profile": {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
                "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1"},
                "spec": {"clusterManager": {"name": "other"}},
                "status": {"accessProviders": [{"name": "a", "cluster": {"server": "https://m:6443",
                    "extensions": [{"name": "b", "extension": {}}]}}]}},
            "file": {"providers": [{"name": "a", "profileSourcedCLIArgsPolicy": "Append",
                "profileSourcedEnvVarsPolicy": "Replace",
                "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": PROGRAM}}]}},
        "secret": {"metadata": {"namespace": "ns", "name": "s"}}})
}

pub fn check(input: &[u8]) {
    let Some(pair) = changed(good(), input) else { return };
    let file = pair.object["file"].to_string();
    for file in [file.as_bytes(), input] {
        match Providers::parse(file) {
            Err(invalid) => assert!(!invalid.to_string().contains("~secret~"), "{invalid}"),
            Ok(providers) => {
                let reading = read(&pair.object["profile"], &providers, &rules());
                let is_registered = matches!(reading, Reading::Register(_));
                assert!(!is_registered || !is_own(&pair.object["profile"]), "our own profile");
                if !is_registered || is_plain(file) {
                    hold(&reading);
                }
            }
        }
    }
}

/// Whether an operator's file sets no variable but the one that `hold` knows as the operator's:
/// other variables in it are not judged.
fn is_plain(file: &[u8]) -> bool {
    let Ok(file) = serde_json::from_slice::<Value>(file) else {
        return !file.windows(3).any(|three| three == b"env");
    };
    let providers = file["providers"].as_array().into_iter().flatten();
    let mut set = providers.flat_map(|one| one["execConfig"]["env"].as_array().into_iter().flatten());
    set.all(|one| one["name"] == PROVIDERS_VARIABLE)
}
