//! Everything a gateway reads from disk: serving certificate, client CA, tokens, policy, manifests.

use std::fs;
use std::path::{Path, PathBuf};

use kit::hub::ClusterSecret;
use kit::pki::{Authority, Issued};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ADMIN, VIEWER};

/// Lets `viewer` read through any cluster.
const POLICY: &str = r#"rules: [{users: [viewer], clusters: ["*"], verbs: [get]}]"#;

/// The files, deleted when dropped.
pub(super) struct Files {
    directory: TempDir,
}

// === impl Files ===

impl Files {
    pub(super) fn new(serving: &Issued, clients: &Authority) -> Self {
        let files = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        fs::create_dir(files.clusters()).expect("the directory is new");
        clients.write_to(files.directory(), "clients").expect("the directory is writable");
        files.write("tokens.csv", &format!("{ADMIN},admin,1,system:masters\n{VIEWER},viewer,2\n"));
        files.write("policy.yaml", POLICY);
        files.write_serving(serving);
        files
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The arguments that name these files.
    pub(super) fn arguments(&self, has_hub: bool) -> Vec<String> {
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.directory().join(name).display());
        let mut arguments = vec![file("tls-cert-file", "serving.crt"), file("tls-private-key-file", "serving.key")];
        if has_hub {
            arguments.push(file("kubeconfig", "kubeconfig"));
        } else {
            arguments.extend([
                "--standalone".to_owned(),
                file("clusters-dir", "clusters"),
                file("token-auth-file", "tokens.csv"),
                file("client-ca-file", "clients.crt"),
                file("standalone-policy", "policy.yaml"),
            ]);
        }
        arguments
    }

    pub(super) fn write_serving(&self, certificate: &Issued) {
        certificate.write_to(self.directory(), "serving").expect("the directory is writable");
    }

    pub(super) fn write_cluster(&self, name: &str, secret: ClusterSecret) {
        let mut manifest = Value::from(secret);
        manifest["apiVersion"] = json!("v1");
        manifest["kind"] = json!("Secret");
        self.write_manifest(name, &manifest.to_string());
    }

    pub(super) fn write_manifest(&self, name: &str, text: &str) {
        self.write(&format!("clusters/{name}.json"), text);
    }

    pub(super) fn remove_cluster(&self, name: &str) {
        fs::remove_file(self.clusters().join(format!("{name}.json"))).expect("the cluster is registered");
    }

    /// Replaces a file in one step: no reader gets half of it.
    fn write(&self, name: &str, text: &str) {
        let (new, path) = (self.directory().join("new"), self.directory().join(name));
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).expect("the directory is writable");
    }

    fn clusters(&self) -> PathBuf {
        self.directory().join("clusters")
    }
}
