//! Kubeconfig files: one server, one credential each, written as JSON (which every YAML parser
//! reads).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kit::pki::PemFiles;
use serde_json::{Value, json};

/// A caller's credential.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A bearer token.
    Token(String),
    /// A client certificate and its key.
    Certificate(PemFiles),
    /// Nothing: the anonymous user.
    None,
}

/// One server as one user.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// URL, with a path if the API is served under one.
    pub server: String,
    /// PEM file with the CA of the server's certificate.
    pub authority: PathBuf,
    /// The user.
    pub credential: Credential,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// Writes it to `path` and returns the path.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        let text = serde_json::to_vec_pretty(&self.document())?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.to_path_buf())
    }

    fn document(&self) -> Value {
        let user = match &self.credential {
            Credential::Token(token) => json!({"token": token}),
            Credential::Certificate(files) => json!({"client-certificate": files.certificate, "client-key": files.key}),
            Credential::None => json!({}),
        };
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": self.server, "certificate-authority": self.authority}}],
            "users": [{"name": "it", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        })
    }
}
