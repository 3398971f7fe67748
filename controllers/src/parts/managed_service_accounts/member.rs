//! Calls to one member through the gateway: ServiceAccounts, and tokens of them.

use api::cluster_name::ClusterName;
use api::side::Side;
use fleet::{Failure, Fleet, Kind};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use net::tls::keypair::certificates;
use register::managed_service_account::{LABEL, MEMBER_NAMESPACE, MemberAccount};
use secrecy::SecretString;
use tokio::time::timeout;

use crate::calls::{creating, deleting};
use crate::term::{MayWrite, NotLeading, WITHIN, within};

/// Most bytes of a response. The largest is a bundle of CA certificates.
const LARGEST: usize = 512 << 10;
/// Most bytes of a CA bundle, which is written to the hub with each token.
const LARGEST_AUTHORITY: usize = 64 << 10;
/// ConfigMap in each namespace of a cluster. Pods verify the API server with it, as does upstream's
/// agent in its pod.
const AUTHORITY: &str = "kube-root-ca.crt";
const CA: &str = "ca.crt";

pub struct Member {
    cluster: ClusterName,
    client: Client,
    may_write: MayWrite,
}

/// A failed call. Its text names the cluster.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error("cluster {0} is not registered")]
    NotRegistered(ClusterName),
    /// No server that can decide has answered.
    #[error("{0}")]
    Away(Failure),
    /// The member's own response.
    #[error("{0}; let the registered credential do that on the member")]
    Forbidden(Failure),
    #[error("{0}")]
    Refused(Failure),
    /// An error of the member itself, or of a webhook there.
    #[error("{0}")]
    Broken(Failure),
    #[error("{0}")]
    NotFound(Failure),
    /// The member's controllers publish it within a moment.
    #[error(
        "cluster {0} has no CA certificate in ConfigMap {MEMBER_NAMESPACE}/{AUTHORITY}: look at its controller manager"
    )]
    NoAuthority(ClusterName),
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
}

// === impl Member ===

impl Member {
    pub fn new(members: &Fleet, cluster: &ClusterName, may_write: MayWrite) -> Self {
        let client = members.sender(cluster).bounded(LARGEST).client(MEMBER_NAMESPACE);
        Self { cluster: cluster.clone(), client, may_write }
    }

    fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.client.clone(), MEMBER_NAMESPACE)
    }

    /// The ServiceAccount, if it exists. Does not use kube's `get_opt`, because a cluster that is
    /// not registered is a 404 too.
    pub async fn account(&self, name: &str) -> Result<Option<MemberAccount>, MemberError> {
        match self.read(self.accounts().get(name)).await {
            Ok(account) => Ok(Some(read(&account.metadata))),
            Err(MemberError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the ServiceAccount, and its namespace if that is missing. Reads it if it exists
    /// already.
    pub async fn create_account(&self, name: &str) -> Result<MemberAccount, MemberError> {
        let labels = [(LABEL.to_owned(), "true".to_owned())].into();
        let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        let (accounts, parameters) = (self.accounts(), creating());
        let create = || self.write(accounts.create(&parameters, &account));
        let created = match create().await {
            Err(MemberError::NotFound(_)) => {
                self.create_namespace().await?;
                create().await
            }
            created => created,
        };
        match created {
            Ok(created) => Ok(read(&created.metadata)),
            Err(MemberError::Refused(failure)) if is_there(&failure) => {
                self.account(name).await?.ok_or(MemberError::Away(failure))
            }
            Err(error) => Err(error),
        }
    }

    async fn create_namespace(&self) -> Result<(), MemberError> {
        let metadata = ObjectMeta { name: Some(MEMBER_NAMESPACE.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api: Api<Namespace> = Api::all(self.client.clone());
        match self.write(api.create(&creating(), &namespace)).await {
            // Another writer created it first.
            Err(MemberError::Refused(failure)) if is_there(&failure) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Requests a token with a life of `seconds`.
    pub async fn token(&self, name: &str, seconds: i64) -> Result<SecretString, MemberError> {
        let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = self.write(self.accounts().create_token_request(name, &creating(), &request)).await?;
        Ok(SecretString::from(answer.status.map(|status| status.token).unwrap_or_default()))
    }

    /// The CA bundle of the member's API server in its own network.
    pub async fn authority(&self) -> Result<String, MemberError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), MEMBER_NAMESPACE);
        let data = match self.read(api.get(AUTHORITY)).await {
            Ok(published) => published.data.unwrap_or_default().remove(CA),
            Err(MemberError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        data.filter(|pem| pem.len() <= LARGEST_AUTHORITY && certificates(pem.as_bytes()).is_ok())
            .ok_or_else(|| MemberError::NoAuthority(self.cluster.clone()))
    }

    /// Deletes this ServiceAccount, but not a later one with its name. Succeeds if it is gone
    /// already.
    pub async fn delete_account(&self, name: &str, account: &MemberAccount) -> Result<(), MemberError> {
        let parameters = deleting(&account.uid, None);
        match self.write(self.accounts().delete(name, &parameters)).await {
            Ok(_) | Err(MemberError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, MemberError> {
        let within = within((self.may_write)())?;
        self.answered(timeout(within, call).await.map_err(|_| Failure::late(within)))
    }

    async fn read<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, MemberError> {
        self.answered(timeout(WITHIN, call).await.map_err(|_| Failure::late(WITHIN)))
    }

    fn answered<T>(&self, answer: Result<Result<T, kube::Error>, Failure>) -> Result<T, MemberError> {
        let failure = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Failure::from(error),
            Err(late) => late,
        };
        Err(judged(&self.cluster, failure))
    }
}

/// Only the member's own response to the request is reported to people. A member that does not
/// answer, is busy, or rejects the registered credential is waited for.
fn judged(cluster: &ClusterName, failure: Failure) -> MemberError {
    let failure = failure.at(cluster);
    match (failure.side, failure.kind) {
        (Some(Side::Caller), Kind::Answered(404)) => MemberError::NotRegistered(cluster.clone()),
        (None, Kind::Answered(404)) if failure.reason == "NotFound" => MemberError::NotFound(failure),
        (None, Kind::Answered(403)) => MemberError::Forbidden(failure),
        (None, Kind::Answered(500..)) => MemberError::Broken(failure),
        _ if failure.is_of_request() => MemberError::Refused(failure),
        _ => MemberError::Away(failure),
    }
}

/// Whether another writer created it first.
fn is_there(failure: &Failure) -> bool {
    failure.reason == "AlreadyExists"
}

fn read(metadata: &ObjectMeta) -> MemberAccount {
    let is_managed = metadata.labels.as_ref().and_then(|labels| labels.get(LABEL)).is_some_and(|value| value == "true");
    MemberAccount { uid: metadata.uid.clone().unwrap_or_default(), is_managed }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn told(status: serde_json::Value) -> MemberError {
        let status: Status = serde_json::from_value(status).unwrap();
        judged(&ClusterName::parse("c1").unwrap(), Failure::from(kube::Error::Api(Box::new(status))))
    }

    #[test]
    fn who_says_no_decides_what_it_means() {
        let ours = json!({"group": "cluster.core.oam.dev", "kind": "clustergateways", "name": "c1"});
        let at_member = json!({"causes": [{"reason": "Member", "message": "connection refused"}],
            "group": "cluster.core.oam.dev", "kind": "clustergateways", "name": "c1"});
        let status = |code: u16, reason: &str, details: &serde_json::Value| {
            told(json!({"status": "Failure", "code": code, "reason": reason, "message": "m", "details": details}))
        };
        let none = json!({"name": "a", "kind": "serviceaccounts"});
        assert!(matches!(status(404, "NotFound", &ours), MemberError::NotRegistered(_)));
        assert!(matches!(status(404, "NotFound", &none), MemberError::NotFound(_)));
        assert!(matches!(status(403, "Forbidden", &none), MemberError::Forbidden(_)));
        assert!(matches!(status(422, "Invalid", &none), MemberError::Refused(_)));
        assert!(matches!(status(413, "RequestEntityTooLarge", &none), MemberError::Refused(_)));
        assert!(matches!(status(500, "InternalError", &none), MemberError::Broken(_)), "a webhook, say");
        for away in [
            status(403, "Forbidden", &ours),
            status(401, "Unauthorized", &none),
            status(429, "TooManyRequests", &none),
            status(502, "BadGateway", &at_member),
            // A hub without the gateway's API: this response says nothing about the account.
            status(404, "Failed to parse error data", &none),
        ] {
            assert!(matches!(away, MemberError::Away(_)), "{away}");
        }
        assert!(status(403, "Forbidden", &none).to_string().contains("cluster c1"), "which");
    }
}
