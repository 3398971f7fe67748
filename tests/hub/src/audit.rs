//! What `ServiceAccounts` write on a hub, and what it refuses to them, by its own audit log: a
//! program that asks in vain for what its chart does not grant may say nothing of it, nor one that
//! writes what it must not.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::control_plane::Launcher;

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// Namespaces of whose accounts everything is logged, reads too: for tests of what a program reads.
const READERS: [&str; 10] = [
    "audited-registration",
    "audited-accounts",
    "audited-import",
    "audited-capi",
    "audited-profiles",
    "audited-placement",
    "audited-sets",
    "audited-works",
    "audited-availability",
    "audited-argocd",
];

/// What somebody asked, as roles name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Empty for the core group.
    pub group: String,
    /// With its subresource, behind a slash.
    pub resource: String,
    /// As RBAC knows it.
    pub verb: String,
}

/// An audit log of what `ServiceAccounts` ask.
#[derive(Debug, Clone)]
pub struct Audit {
    log: PathBuf,
}

// === impl Audit ===

impl Audit {
    /// The log of the API server `name`, and that server's flags for it.
    pub fn prepare(launcher: &Launcher, name: &str) -> Result<(Self, [String; 2])> {
        Self::prepare_for(launcher, name, &[])
    }

    /// The same of writes alone: reads are many. Of the accounts of a few namespaces, of both.
    pub fn prepare_of_writes(launcher: &Launcher, name: &str) -> Result<(Self, [String; 2])> {
        Self::prepare_for(launcher, name, &WRITES)
    }

    fn prepare_for(launcher: &Launcher, name: &str, verbs: &[&str]) -> Result<(Self, [String; 2])> {
        let (policy, log) =
            (launcher.file(&format!("{name}-audit-policy.json")), launcher.file(&format!("{name}-audit.log")));
        std::fs::write(&policy, self::policy(verbs).to_string())?;
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
        let theirs = self.asked(&format!("system:serviceaccount:{namespace}:"), mark)?;
        anyhow::ensure!(!theirs.is_empty(), "nobody of {namespace} has asked for anything");
        let refused = theirs.iter().filter(|event| event["responseStatus"]["code"] == 403);
        Ok(refused
            .map(|event| format!("{} {} {}", event["user"]["username"], event["verb"], event["requestURI"]))
            .collect())
    }

    /// What the account has written since `mark`, as verb and URL; what was refused is no write.
    pub fn writes(&self, account: (&str, &str), mark: usize) -> Result<Vec<String>> {
        let written = self.events(account, mark)?.into_iter().filter(|event| {
            let is_write = WRITES.iter().any(|verb| event["verb"] == *verb);
            is_write && event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300)
        });
        Ok(written.map(|event| format!("{} {}", text(&event["verb"]), text(&event["requestURI"]))).collect())
    }

    /// What the account has asked since `mark` and was not refused.
    pub fn used(&self, account: (&str, &str), mark: usize) -> Result<BTreeSet<Right>> {
        let mut used = BTreeSet::new();
        for event in self.events(account, mark)? {
            let (right, code) = (Right::of(&event), event["responseStatus"]["code"].as_u64());
            // An apply that makes an object needs the right to create it, too.
            if code == Some(201) && right.verb == "patch" {
                used.insert(Right { verb: "create".to_owned(), ..right.clone() });
            }
            if code != Some(403) {
                used.insert(right);
            }
        }
        Ok(used)
    }

    /// The names of the objects that the account has read by name since `mark`, of a resource in a
    /// namespace.
    pub fn read_by_name(
        &self,
        account: (&str, &str),
        (namespace, resource): (&str, &str),
        mark: usize,
    ) -> Result<BTreeSet<String>> {
        let events = self.events(account, mark)?.into_iter().filter(|event| {
            let object = &event["objectRef"];
            event["verb"] == "get" && object["resource"] == resource && object["namespace"] == namespace
        });
        Ok(events.map(|event| text(&event["objectRef"]["name"])).collect())
    }

    /// Of one account, since `mark`.
    fn events(&self, (namespace, account): (&str, &str), mark: usize) -> Result<Vec<Value>> {
        let name = format!("system:serviceaccount:{namespace}:{account}");
        Ok(self.asked(&name, mark)?.into_iter().filter(|event| event["user"]["username"] == name).collect())
    }

    /// The events of users whose names begin so, since `mark`.
    fn asked(&self, users: &str, mark: usize) -> Result<Vec<Value>> {
        let log = self.read()?;
        let lines = log.get(mark..).context("the log is shorter than it was")?.lines();
        // Most are of others: to read all of them takes a second.
        let lines = lines.filter(|line| line.contains(users));
        let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.filter(|event| event["user"]["username"].as_str().is_some_and(|it| it.starts_with(users))).collect())
    }

    /// The file comes with the first event, and a last line may be half written.
    fn read(&self) -> Result<String> {
        match std::fs::read_to_string(&self.log) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            text => text.with_context(|| format!("cannot read {}", self.log.display())),
        }
    }
}

// === impl Right ===

impl Right {
    fn of(event: &Value) -> Self {
        let object = &event["objectRef"];
        let mut resource = text(&object["resource"]);
        if let Some(subresource) = object["subresource"].as_str() {
            resource = format!("{resource}/{subresource}");
        }
        Self { group: text(&object["apiGroup"]), resource, verb: text(&event["verb"]) }
    }
}

fn text(field: &Value) -> String {
    field.as_str().unwrap_or_default().to_owned()
}

/// Of `verbs`, all if there are none. The controllers of Kubernetes, of which there are many, say
/// too much.
fn policy(verbs: &[&str]) -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata", "userGroups": READERS.map(|namespace| format!("system:serviceaccounts:{namespace}"))},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "verbs": verbs},
        ],
    })
}
