//! `ManagedServiceAccounts` of Open Cluster Management: the next step for each.
//!
//! Its namespace is its cluster's name, and nothing else names a cluster: a user that may create
//! one there gets nothing of another cluster. Secrets and `ServiceAccounts` that it does not own
//! are neither read nor overwritten. Upstream's agent does both (v0.10.0,
//! `pkg/addon/agent/controller/token.go`): a user that may create such an object can choose among
//! the accounts of other add-ons on the member, with all their rights.

mod judgement;
mod status;
mod validity;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

pub use self::judgement::{Judgement, MemberAccount, Why};
use crate::Refused;
use crate::fields::{field, list, required, text};
use crate::reading::{Object, SecretObject};

pub const GROUP: &str = "authentication.open-cluster-management.io";
pub const KIND: &str = "ManagedServiceAccount";
pub const PLURAL: &str = "managedserviceaccounts";
pub const VERSIONS: &[&str] = &["v1beta1"];
/// Label of `ServiceAccounts` and Secrets that belong to a `ManagedServiceAccount`: `true`.
pub const LABEL: &str = crate::ocm::TOKEN_LABEL;
/// Namespace of the `ServiceAccounts` on members: the default namespace of upstream's agent.
pub const MEMBER_NAMESPACE: &str = "open-cluster-management-agent-addon";
/// Holds a `ManagedServiceAccount` until its ServiceAccount is gone. Upstream has no finalizer: its
/// agent runs on the member, and sees leftovers at its next start. A token lives for a year, and
/// deleting the `ManagedServiceAccount` is how to revoke it.
pub const FINALIZER: &str = "cluster.core.oam.dev/managed-serviceaccount";

const VALIDITY: &str = "spec.rotation.validity";
const TTL: &str = "spec.ttlSecondsAfterCreation";
const CREATED: &str = "metadata.creationTimestamp";

/// A `ManagedServiceAccount`.
#[derive(Debug, Clone)]
pub struct Account {
    /// The name of its cluster.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The resourceVersion.
    pub version: String,
    pub api_version: String,
    /// Requested life of a token, in seconds. `None`: the field is not a duration.
    validity: Option<i64>,
    /// Time at which it must be deleted, in seconds since 1970.
    end: Option<i64>,
    is_deleting: bool,
    finalizers: Vec<String>,
    status: Value,
}

/// The step for an object, before anything else is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It has another owner, or is being deleted.
    Leave,
    /// Upstream's add-on is installed: remove our finalizer, and touch nothing else.
    HandOver,
    /// Delete its ServiceAccount from the member, and then our finalizer.
    Clean,
    /// Its time is over: delete it.
    End,
    /// Keep its token, or get it one.
    Keep,
}

/// Why it gets no token until a person corrects something. The texts are for its condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{VALIDITY} is not a duration: write for example 720h")]
    Validity,
    #[error("Secret {0} exists and does not belong to this ManagedServiceAccount: delete it, or use another name")]
    SecretNotOwn(String),
    #[error(
        "ServiceAccount {MEMBER_NAMESPACE}/{name} exists on cluster {cluster} without the label {LABEL}=true: use \
         another name, or set the label there if its token may be on the hub"
    )]
    AccountNotOwn { cluster: String, name: String },
    #[error("cluster {0} issued a token of another account: check that its endpoint leads to its own API server")]
    OtherAccount(String),
    #[error(
        "cluster {cluster} issued a token for {life} s, less than {SHORTEST} s: check the limits of its API server"
    )]
    TooShort { cluster: String, life: i64 },
    #[error("cluster {0} issued a token that cannot be read")]
    Unreadable(String),
    #[error("cluster {0} issued a token that is already due for renewal: compare its clock with the hub's")]
    Stale(String),
}

/// Shortest usable life of a token, in seconds: one that is due at once would be requested again
/// and again. API servers grant 600 s at least.
pub const SHORTEST: i64 = 300;
/// Seconds, by our clock, for which a new token must be good before it is due for renewal.
const LEAST_USE: i64 = 60;

// === impl Account ===

impl Account {
    /// Reads the JSON of an object of the hub.
    pub fn read(account: &Value) -> Result<Self, Refused> {
        let object = Object::read(account)?;
        object.check(GROUP, KIND, VERSIONS)?;
        let ttl = field(account, TTL).map(|value| value.as_i64().ok_or(Refused::Shape(TTL))).transpose()?;
        let created = match ttl {
            Some(_) => object.created.parse::<Timestamp>().map_err(|_| Refused::Shape(CREATED))?.as_second(),
            None => 0,
        };
        let finalizers = list(account, "metadata.finalizers")?.iter().filter_map(Value::as_str);
        Ok(Self {
            validity: validity::seconds(text(account, VALIDITY)?),
            end: ttl.map(|ttl| created.saturating_add(ttl)),
            namespace: required(account, "metadata.namespace")?.to_owned(),
            version: text(account, "metadata.resourceVersion")?.to_owned(),
            api_version: required(account, "apiVersion")?.to_owned(),
            is_deleting: object.is_deleting,
            finalizers: finalizers.map(str::to_owned).collect(),
            status: field(account, "status").filter(|status| status.is_object()).cloned().unwrap_or_else(|| json!({})),
            name: object.name,
            uid: object.uid,
        })
    }

    /// `is_upstreams`: the add-on is installed for its cluster.
    pub fn step(&self, is_upstreams: bool, now_seconds: i64) -> Step {
        match (is_upstreams, self.is_held()) {
            (true, true) => Step::HandOver,
            (true, false) => Step::Leave,
            (false, true) if self.is_deleting => Step::Clean,
            (false, false) if self.is_deleting => Step::Leave,
            (false, _) if self.end.is_some_and(|end| now_seconds > end) => Step::End,
            (false, _) => Step::Keep,
        }
    }

    /// The life to request for a token, in seconds.
    pub fn validity(&self) -> Result<i64, Refusal> {
        self.validity.ok_or(Refusal::Validity)
    }

    /// Time at which it must be deleted, if any.
    pub fn end(&self) -> Option<i64> {
        self.end
    }

    /// Whether it has our finalizer.
    pub fn is_held(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// Its finalizers, with or without ours.
    pub fn finalizers(&self, is_held: bool) -> Vec<String> {
        let others = self.finalizers.iter().filter(|finalizer| *finalizer != FINALIZER).cloned();
        others.chain(is_held.then(|| FINALIZER.to_owned())).collect()
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn subject(&self) -> String {
        format!("system:serviceaccount:{MEMBER_NAMESPACE}:{}", self.name)
    }
}

#[cfg(test)]
mod tests;
