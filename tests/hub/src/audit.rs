//! The requests of `ServiceAccounts` on a hub and its refusals, from the hub's own audit log: a
//! program may not report that it lacks a right that its chart does not grant, or that it writes
//! what it must not.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use kit::lines;
use serde_json::{Value, json};

use crate::control_plane::Launcher;

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// Namespaces for whose accounts everything is logged, including reads: for tests of what a program
/// reads.
const READERS: [&str; 11] = [
    "audited-registration",
    "audited-accounts",
    "audited-import",
    "audited-capi",
    "audited-lists",
    "audited-profiles",
    "audited-placement",
    "audited-sets",
    "audited-works",
    "audited-availability",
    "audited-argocd",
];

/// A right that a request used, in the words of roles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Empty for the core group.
    pub group: String,
    /// The resource, with its subresource after a slash.
    pub resource: String,
    /// The verb in RBAC's words.
    pub verb: String,
}

/// An audit log of the requests of `ServiceAccounts`.
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

    /// The same for writes only, since reads are many. For the accounts of a few namespaces it logs
    /// both.
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

    /// The length of the log so far.
    pub fn mark(&self) -> Result<usize> {
        match std::fs::metadata(&self.log) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            metadata => Ok(usize::try_from(metadata.with_context(|| self.unread())?.len())?),
        }
    }

    /// The requests of the accounts of `namespace` that were refused since `mark` because a right
    /// is missing. An error if the accounts have made no requests, because then none can be
    /// refused.
    pub fn refusals(&self, namespace: &str, mark: usize) -> Result<Vec<String>> {
        let theirs = self.asked(&format!("system:serviceaccount:{namespace}:"), mark)?;
        ensure!(!theirs.is_empty(), "nobody of {namespace} has asked for anything");
        let refused = theirs.iter().filter(|event| event["responseStatus"]["code"] == 403);
        Ok(refused
            .map(|event| format!("{} {} {}", event["user"]["username"], event["verb"], event["requestURI"]))
            .collect())
    }

    /// The account's writes since `mark`, as verb and URL, without refused ones.
    pub fn writes(&self, account: (&str, &str), mark: usize) -> Result<Vec<String>> {
        let written = self.events(account, mark)?.into_iter().filter(|event| {
            let is_write = WRITES.iter().any(|verb| event["verb"] == *verb);
            is_write && event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300)
        });
        Ok(written.map(|event| format!("{} {}", text(&event["verb"]), text(&event["requestURI"]))).collect())
    }

    /// The account's requests since `mark` that were not refused.
    pub fn used(&self, account: (&str, &str), mark: usize) -> Result<BTreeSet<Right>> {
        let mut used = BTreeSet::new();
        for event in self.events(account, mark)? {
            let (right, code) = (Right::of(&event), event["responseStatus"]["code"].as_u64());
            // An apply that creates an object needs the right to create it, too.
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

    /// The events of one account since `mark`.
    fn events(&self, (namespace, account): (&str, &str), mark: usize) -> Result<Vec<Value>> {
        let name = format!("system:serviceaccount:{namespace}:{account}");
        Ok(self.asked(&name, mark)?.into_iter().filter(|event| event["user"]["username"] == name).collect())
    }

    /// The events since `mark` of users whose names begin with `users`.
    fn asked(&self, users: &str, mark: usize) -> Result<Vec<Value>> {
        let log = self.since(mark)?;
        // Most lines are of other users, and it takes a second to parse all of them.
        let lines = lines::with(&log, &[users]);
        let events = lines.into_iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.filter(|event| event["user"]["username"].as_str().is_some_and(|it| it.starts_with(users))).collect())
    }

    /// What was logged since `mark`: the log of a whole run takes seconds to look through. The file
    /// is created with the first event, and its last line may be incomplete.
    fn since(&self, mark: usize) -> Result<String> {
        ensure!(mark <= self.mark()?, "the log is shorter than it was");
        let mut log = match File::open(&self.log) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            log => log.with_context(|| self.unread())?,
        };
        log.seek(SeekFrom::Start(u64::try_from(mark)?))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).with_context(|| self.unread())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn unread(&self) -> String {
        format!("cannot read {}", self.log.display())
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

/// The policy for `verbs`, or for all verbs if empty. It leaves out Kubernetes' own controllers,
/// which make too many requests.
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
