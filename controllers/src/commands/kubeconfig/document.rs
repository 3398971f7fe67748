//! The printed kubeconfig.

use std::path::PathBuf;

use anyhow::Context as _;
use api::cluster_name::ClusterName;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::server::Server;

/// Name of the user that runs `credential`.
const USER: &str = "cluster-gateway";
/// Searched in PATH.
const COMMAND: &str = "cluster-gateway-controllers";

/// The user of the contexts.
#[derive(Debug, Clone)]
pub enum User {
    /// The token in a file, whose path is absolute.
    Token(PathBuf),
    /// One of another kubeconfig.
    Named(String),
}

/// A context for each of `clusters`, which include their paths.
pub fn document(server: &Server, user: &User, clusters: &[(ClusterName, String)]) -> Value {
    let (name, users) = match user {
        User::Token(file) => (USER, vec![json!({"name": USER, "user": {"exec": exec(file)}})]),
        User::Named(name) => (name.as_str(), Vec::new()),
    };
    let stanza = |(cluster, path): &(ClusterName, String)| {
        let mut fields = server.fields.clone();
        fields.insert("server".to_owned(), format!("{}{path}", server.url).into());
        json!({"name": cluster.as_str(), "cluster": fields})
    };
    let context = |(cluster, _): &(ClusterName, String)| json!({"name": cluster.as_str(), "context": {"cluster": cluster.as_str(), "user": name}});
    // With one cluster, its context is the current one.
    let current = if let [(cluster, _)] = clusters { cluster.as_str() } else { "" };
    json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": clusters.iter().map(stanza).collect::<Vec<_>>(),
        "contexts": clusters.iter().map(context).collect::<Vec<_>>(),
        "users": users,
        "current-context": current,
    })
}

fn exec(file: &std::path::Path) -> Value {
    json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": COMMAND,
        "args": ["credential", format!("--token-file={}", file.display())],
        "interactiveMode": "Never",
        "installHint": format!("{COMMAND} is not in PATH: it comes with the gateway"),
    })
}

/// The user of a kubeconfig's current context.
pub fn current_user(kubeconfig: &Kubeconfig) -> anyhow::Result<String> {
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let current = current.context("it has no current context: set one with `kubectl config use-context`")?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == current);
    let user = context.and_then(|context| context.context.as_ref()?.user.clone());
    let user = user.filter(|user| kubeconfig.auth_infos.iter().any(|known| known.name == *user));
    user.with_context(|| format!("its current context {current:?} has no user: see `kubectl config view`"))
}
