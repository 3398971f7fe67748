//! The kubeconfig that the demo hands to its user.
//!
//! Written as JSON, which every kubeconfig reader accepts because YAML includes it, so nothing has
//! to be escaped by hand. The file holds tokens and is readable by its owner only.

use std::{io, io::Write as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::private_file;

/// A kubeconfig under construction: one context for each server, one user for each identity.
#[derive(Debug, Default)]
pub struct Kubeconfig {
    clusters: Vec<Value>,
    users: Vec<(String, SecretString)>,
    contexts: Vec<Value>,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// Adds an identity that authenticates with a bearer token.
    #[must_use]
    pub fn user(mut self, name: &str, token: &SecretString) -> Self {
        self.users.push((name.to_owned(), token.clone()));
        self
    }

    /// Adds the context `name`, reaching `server` (a URL, with a path if need be) as `user`.
    #[must_use]
    pub fn context(mut self, name: &str, server: &str, ca_pem: &str, user: &str) -> Self {
        let authority = STANDARD.encode(ca_pem);
        self.clusters
            .push(json!({"name": name, "cluster": {"server": server, "certificate-authority-data": authority}}));
        self.contexts.push(json!({"name": name, "context": {"cluster": name, "user": user}}));
        self
    }

    /// Writes the file with mode 0600; the first context is the current one.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = private_file::create(path)?;
        serde_json::to_writer_pretty(&mut file, &self.document())?;
        file.write_all(b"\n")
    }

    fn document(&self) -> Value {
        let users: Vec<Value> = self
            .users
            .iter()
            .map(|(name, token)| json!({"name": name, "user": {"token": token.expose_secret()}}))
            .collect();
        json!({
            "kind": "Config",
            "apiVersion": "v1",
            "clusters": self.clusters,
            "users": users,
            "contexts": self.contexts,
            "current-context": self.contexts.first().map_or(&Value::Null, |context| &context["name"]),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_file_is_complete_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let config = Kubeconfig::default()
            .user("admin", &SecretString::from("sesame"))
            .context("berlin", "https://127.0.0.1:1/apis/x/proxy", "CA", "admin")
            .context("gateway", "https://127.0.0.1:1", "CA", "admin");
        config.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        insta::assert_json_snapshot!(written);
        assert!(!format!("{config:?}").contains("sesame"), "tokens do not print");
    }
}
