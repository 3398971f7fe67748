//! Gives the hub a token of one of the member's accounts: writes the Secret of a
//! `ManagedServiceAccount` in the cluster's namespace, as upstream's agent does
//! (<https://github.com/open-cluster-management-io/managed-serviceaccount/tree/v0.10.0>), so that
//! the hub's clients reach the member without a typed credential.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use hub::{Cause, Requests};
use net::backoff::Backoff;
use net::tls::keypair::certificates;
use parking_lot::Mutex;
use register::managed_service_account::{GROUP, KIND, LABEL, PLURAL, SHORTEST, VERSIONS};
use register::service_account_token::ServiceAccountToken;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Keeping, Troubles};
use crate::args::SecretName;
use crate::joining::JoinError;

/// Requested life in seconds: the default of upstream's definition (8640h).
const VALIDITY: u64 = 8640 * 3600;
/// Interval between two reads of the Secret and the account.
const LOOKS: Backoff = Backoff::steady(Duration::from_mins(5), 0.25);
/// The ConfigMap in each namespace with which pods verify the API server.
const AUTHORITY: &str = "kube-root-ca.crt";
/// Limit of a CA bundle, in bytes.
const LARGEST_AUTHORITY: usize = 64 << 10;
const CA: &str = "ca.crt";
const TOKEN: &str = "token";
const MANAGER: &str = "tunnel-agent";
const FOREIGN: &str = "it issued a token that is not this account's";

/// See the module.
pub struct Filling<'a> {
    keeping: &'a Keeping<'a>,
    member: &'a Requests,
    account: &'a SecretName,
    /// A token that is not on the hub yet: a repeated write does not issue another.
    unwritten: Mutex<Option<SecretString>>,
    /// Whether a `ManagedServiceAccount` has been seen.
    had_owner: AtomicBool,
}

/// The verdict on the hub's Secret.
#[derive(Debug, PartialEq, Eq)]
enum SecretVerdict {
    /// A token that is good until this time, in seconds since 1970.
    Good(i64),
    /// The Secret must be written.
    Due,
    /// The Secret is not ours to write.
    Foreign(&'static str),
}

// === impl Filling ===

impl<'a> Filling<'a> {
    pub fn new(keeping: &'a Keeping<'a>, member: &'a Requests, account: &'a SecretName) -> Self {
        let (unwritten, had_owner) = (Mutex::default(), AtomicBool::default());
        Self { keeping, member, account, unwritten, had_owner }
    }

    /// Runs while the cluster is accepted.
    pub async fn run(&self) -> Infallible {
        let (mut troubles, filled) = (Troubles::default(), &self.keeping.joining.metrics.credential_filled);
        let mut cluster = self.keeping.cluster.subscribe();
        loop {
            self.keeping.accepted(&mut cluster).await;
            let wait = match self.look().await {
                Ok(due) => {
                    troubles.over();
                    filled.set(1);
                    until(due).min(LOOKS.wait(0))
                }
                Err(error) => {
                    filled.set(0);
                    troubles.failed(&error)
                }
            };
            // A cluster that is no longer accepted gets no more tokens.
            if timeout(wait, cluster.wait_for(Option::is_none)).await.is_ok() {
                filled.set(0);
            }
        }
    }

    /// Ensures that the hub has a good token. Returns when the next is due.
    async fn look(&self) -> Result<i64, JoinError> {
        let account =
            self.ask("reading it", self.member.get(&self.path("serviceaccounts", &self.account.name))).await?;
        let uid = account["metadata"]["uid"].as_str().unwrap_or_default();
        let authority = self.authority().await?;
        let path = format!("/api/v1/namespaces/{}/secrets/{}", self.keeping.joining.cluster, self.account.name);
        let held =
            optional(self.keeping.hub().get(&path).await).map_err(JoinError::hub("reading the token's Secret"))?;
        let owner = self.owner().await?;
        self.check_owner(owner.as_ref(), held.as_ref())?;
        match self.judge(held.as_ref(), owner.as_ref(), uid, &authority, now()) {
            SecretVerdict::Good(due) => Ok(due),
            SecretVerdict::Due => self.fill(&path, owner.as_ref(), uid, &authority).await,
            SecretVerdict::Foreign(why) => Err(JoinError::Credential(why.to_owned())),
        }
    }

    /// Deleting the `ManagedServiceAccount` also withdraws the request for a token here.
    fn check_owner(&self, owner: Option<&Value>, held: Option<&Value>) -> Result<(), JoinError> {
        let had_one = self.had_owner.fetch_or(owner.is_some(), Ordering::Relaxed);
        if owner.is_none() && (had_one || held.and_then(owner_of).is_some()) {
            let text = "its ManagedServiceAccount was deleted: the agent fills it when there is one again; earlier \
                        tokens stay valid until the member's ServiceAccount is deleted";
            return Err(JoinError::Credential(text.into()));
        }
        Ok(())
    }

    fn judge(
        &self,
        held: Option<&Value>,
        owner: Option<&Value>,
        uid: &str,
        authority: &str,
        now_seconds: i64,
    ) -> SecretVerdict {
        let Some(held) = held else { return SecretVerdict::Due };
        if held["type"] != "Opaque" || held["metadata"]["labels"][LABEL] != "true" {
            return SecretVerdict::Foreign("it exists and does not belong to a ManagedServiceAccount: delete it");
        }
        let data = |key: &str| held["data"][key].as_str().and_then(|text| STANDARD.decode(text).ok());
        let Some(token) = data(TOKEN).as_deref().and_then(ServiceAccountToken::read) else { return SecretVerdict::Due };
        if token.subject != self.subject() {
            // Two programs that fill it would overwrite each other's token forever.
            let foreign = "it holds a token of another account, so another program fills it: delete it, or run \
                           only one of the two";
            return if token.ends > now_seconds { SecretVerdict::Foreign(foreign) } else { SecretVerdict::Due };
        }
        let due = due(&token);
        let is_owned = owner.is_none_or(|owner| owner_of(held) == owner["metadata"]["uid"].as_str());
        let is_good =
            is_owned && token.uid == uid && due > now_seconds && data(CA).is_some_and(|ca| ca == authority.as_bytes());
        if is_good { SecretVerdict::Good(due) } else { SecretVerdict::Due }
    }

    async fn fill(&self, path: &str, owner: Option<&Value>, uid: &str, authority: &str) -> Result<i64, JoinError> {
        let kept = self.unwritten.lock().clone();
        let kept = kept.filter(|text| self.read(text, uid).is_some_and(|token| due(&token) > now()));
        let text = match kept {
            Some(text) => text,
            None => self.issued(uid).await?,
        };
        let token = self.read(&text, uid).ok_or_else(|| JoinError::Issued(FOREIGN.into()))?;
        *self.unwritten.lock() = Some(text.clone());
        let secret = self.secret(owner, authority, text.expose_secret());
        let written = self.keeping.hub().apply(path, MANAGER, &secret).await;
        written.map_err(JoinError::hub("writing the token's Secret"))?;
        *self.unwritten.lock() = None;
        tracing::info!(account = self.subject(), life = token.life(), "gave the hub a token of this cluster");
        Ok(due(&token))
    }

    /// The claims of a token, if it is this account's.
    fn read(&self, text: &SecretString, uid: &str) -> Option<ServiceAccountToken> {
        let token = ServiceAccountToken::read(text.expose_secret().as_bytes());
        token.filter(|token| token.subject == self.subject() && token.uid == uid)
    }

    /// Requests a new token from the member.
    async fn issued(&self, uid: &str) -> Result<SecretString, JoinError> {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": VALIDITY}});
        let token_path = format!("{}/token", self.path("serviceaccounts", &self.account.name));
        let answer = self.ask("asking for a token", self.member.create(&token_path, &request)).await?;
        let text = SecretString::from(answer["status"]["token"].as_str().unwrap_or_default());
        let token = self.read(&text, uid).ok_or_else(|| JoinError::Issued(FOREIGN.into()))?;
        if token.life() < SHORTEST || due(&token) <= now() {
            let text = "it issued a token that is already due for renewal: check the limits of its API server, and \
                        compare the clocks";
            return Err(JoinError::Issued(text.into()));
        }
        Ok(text)
    }

    /// The object that owns the Secret, if it exists: the Secret is deleted with it.
    async fn owner(&self) -> Result<Option<Value>, JoinError> {
        let (cluster, name, version) = (&self.keeping.joining.cluster, &self.account.name, VERSIONS[0]);
        let path = format!("/apis/{GROUP}/{version}/namespaces/{cluster}/{PLURAL}/{name}");
        // If upstream's kinds are not installed, the answer is 404, too.
        let found = optional(self.keeping.hub().get(&path).await);
        found.map_err(JoinError::hub("reading the ManagedServiceAccount"))
    }

    fn secret(&self, owner: Option<&Value>, authority: &str, token: &str) -> Value {
        let mut metadata = json!({"name": self.account.name, "namespace": self.keeping.joining.cluster,
            "labels": {LABEL: "true"}});
        if let Some(owner) = owner {
            metadata["ownerReferences"] = json!([{"apiVersion": format!("{GROUP}/{}", VERSIONS[0]), "kind": KIND,
                "name": self.account.name, "uid": owner["metadata"]["uid"]}]);
        }
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata,
            "data": {CA: STANDARD.encode(authority), TOKEN: STANDARD.encode(token)}})
    }

    /// The CA of the member's API server inside its own network, where the agent dials it.
    async fn authority(&self) -> Result<String, JoinError> {
        let published = self.ask("reading the CA", self.member.get(&self.path("configmaps", AUTHORITY))).await?;
        let pem = published["data"][CA].as_str().unwrap_or_default();
        if pem.len() <= LARGEST_AUTHORITY && certificates(pem.as_bytes()).is_ok() {
            return Ok(pem.to_owned());
        }
        Err(JoinError::Issued(format!("it has no CA certificate in ConfigMap {AUTHORITY}")))
    }

    async fn ask(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<Value, Cause>>,
    ) -> Result<Value, JoinError> {
        call.await.map_err(|error| JoinError::Account { what, error })
    }

    fn path(&self, kind: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{}/{kind}/{name}", self.account.namespace)
    }

    fn subject(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.account.namespace, self.account.name)
    }
}

/// The uid of the `ManagedServiceAccount` that owns a Secret.
fn owner_of(secret: &Value) -> Option<&str> {
    let owners = secret["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["kind"] == KIND)?["uid"].as_str()
}

fn optional(answer: Result<Value, Cause>) -> Result<Option<Value>, Cause> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}

/// After four fifths of the granted life, as upstream does.
fn due(token: &ServiceAccountToken) -> i64 {
    token.issued.saturating_add(token.life() / 5 * 4)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Time until a moment, and one second more.
fn until(moment: i64) -> Duration {
    Duration::from_secs(u64::try_from(moment.saturating_sub(now())).unwrap_or_default() + 1)
}
