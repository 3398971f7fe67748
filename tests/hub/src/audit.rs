//! What a hub refuses to `ServiceAccounts`, by its own audit log: a program that asks in vain for
//! what its chart does not grant may say nothing of it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::control_plane::Launcher;

/// An audit log of what `ServiceAccounts` ask.
#[derive(Debug, Clone)]
pub struct Audit {
    log: PathBuf,
}

// === impl Audit ===

impl Audit {
    /// The log of the API server `name`, and that server's flags for it.
    pub fn prepare(launcher: &Launcher, name: &str) -> Result<(Self, [String; 2])> {
        let (policy, log) =
            (launcher.file(&format!("{name}-audit-policy.json")), launcher.file(&format!("{name}-audit.log")));
        std::fs::write(&policy, self::policy().to_string())?;
        let flags =
            [format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
        Ok((Self { log }, flags))
    }

    /// How much there is until now.
    pub fn mark(&self) -> Result<usize> {
        Ok(self.read()?.len())
    }

    /// What the accounts of `namespace` were refused for want of a right, since `mark`; an error if
    /// they have asked for nothing. Who asks nothing is refused nothing.
    pub fn refusals(&self, namespace: &str, mark: usize) -> Result<Vec<String>> {
        let log = self.read()?;
        let events = log.get(mark..).context("the log is shorter than it was")?.lines();
        let events = events.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let accounts = format!("system:serviceaccount:{namespace}:");
        let is_theirs = |event: &Value| event["user"]["username"].as_str().is_some_and(|it| it.starts_with(&accounts));
        let theirs: Vec<Value> = events.filter(is_theirs).collect();
        anyhow::ensure!(!theirs.is_empty(), "nobody of {namespace} has asked for anything");
        let refused = theirs.iter().filter(|event| event["responseStatus"]["code"] == 403);
        Ok(refused
            .map(|event| format!("{} {} {}", event["user"]["username"], event["verb"], event["requestURI"]))
            .collect())
    }

    /// The file comes with the first event, and a last line may be half written.
    fn read(&self) -> Result<String> {
        match std::fs::read_to_string(&self.log) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            text => text.with_context(|| format!("cannot read {}", self.log.display())),
        }
    }
}

/// The controllers of Kubernetes, of which there are many, say too much.
fn policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        ],
    })
}
