//! Whose a registration is: the member and account that its annotations name.

use std::collections::BTreeMap;

use api::secret::{
    AGENT_ACCOUNT_ANNOTATION, CREDENTIAL_TYPE_LABEL, ENDPOINT_KEY, MEMBER_ACCOUNT_ANNOTATION, MEMBER_UID_ANNOTATION,
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::account::Account;

/// The owner of a name, for a user that wants to register a member under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Free,
    /// The name belongs to the same member.
    Own,
    /// The name belongs to a cluster whose Secret does not identify its member.
    Unsaid,
    /// The name belongs to something else, as the sentence says.
    Taken(String),
}

/// Whether the gateway takes the Secret for a cluster.
pub fn is_cluster(secret: &Secret) -> bool {
    secret.labels().contains_key(CREDENTIAL_TYPE_LABEL)
}

/// The uid that identifies the cluster's member. `None`: unknown.
pub fn member_uid(secret: &Secret) -> Option<&str> {
    secret.annotations().get(MEMBER_UID_ANNOTATION).map(String::as_str)
}

/// The ServiceAccount on the member that the Secret names.
pub fn account(secret: &Secret) -> Option<Account> {
    Account::parse(secret.annotations().get(MEMBER_ACCOUNT_ANNOTATION)?)
}

/// The ServiceAccount on the hub of the cluster's agents, which the Secret names.
pub fn agent_account(secret: &Secret) -> Option<Account> {
    Account::parse(secret.annotations().get(AGENT_ACCOUNT_ANNOTATION)?)
}

/// Whether a Secret with these annotations has its token from `account` on the member with `uid`.
pub(super) fn is_named_by(annotations: &BTreeMap<String, String>, account: &Account, uid: &str) -> bool {
    annotations.get(MEMBER_ACCOUNT_ANNOTATION) == Some(&account.path())
        && annotations.get(MEMBER_UID_ANNOTATION).is_some_and(|known| known == uid)
}

/// The owner of the name of `existing`, for the member with `uid`.
pub fn standing(existing: Option<&Secret>, uid: &str) -> Standing {
    let Some(secret) = existing else { return Standing::Free };
    if !is_cluster(secret) {
        return Standing::Taken("a Secret with this name exists and is not a cluster".to_owned());
    }
    match secret.annotations().get(MEMBER_UID_ANNOTATION) {
        Some(known) if known == uid => Standing::Own,
        Some(_) => Standing::Taken(another(secret)),
        None => Standing::Unsaid,
    }
}

/// Says that the name is another member's, and where that member is.
pub fn another(secret: &Secret) -> String {
    let endpoint = secret.data.as_ref().and_then(|data| data.get(ENDPOINT_KEY));
    let place = endpoint
        .and_then(|url| std::str::from_utf8(&url.0).ok())
        .and_then(|url| api::secret::Endpoint::parse(url.trim(), true).ok());
    let place = place.map(|url| format!(" ({url})")).unwrap_or_default();
    format!("another member is registered under this name{place}")
}
