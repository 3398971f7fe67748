//! The clusters' Secrets on the hub.

mod standing;

use api::cluster_name::ClusterName;
use api::secret::CREDENTIAL_TYPE_LABEL;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use serde_json::Value;
use std::collections::BTreeMap;

use self::standing::is_named_by;
use crate::account::Account;
use crate::namespace;
use crate::session::Session;
use crate::trouble::{Exit, Result, Trouble};

pub use self::standing::{Standing, account, agent_account, another, is_cluster, member_uid, standing};

/// Secrets per page, as many as client-go asks for.
const PAGE: u32 = 500;
/// Most pages that are read.
const PAGES: usize = 1000;

/// The clusters' Secrets.
pub struct Registrations {
    secrets: Api<Secret>,
    session: Session,
    pub namespace: String,
}

// === impl Registrations ===

impl Registrations {
    /// The Secrets of the session's hub.
    pub async fn of(session: &Session) -> Result<Self> {
        let namespace = namespace::of_clusters(session).await?;
        let secrets = Api::namespaced(session.hub().clone(), &namespace);
        Ok(Self { secrets, session: session.clone(), namespace })
    }

    /// The Secret with this name, whether or not it is a cluster's.
    pub async fn find(&self, name: &ClusterName) -> Result<Option<Secret>> {
        self.session.within(self.secrets.get_opt(name.as_str())).await.map_err(|trouble| self.refused(trouble, "get"))
    }

    /// The Secret of the cluster.
    pub async fn get(&self, name: &ClusterName) -> Result<Secret> {
        self.find(name).await?.filter(is_cluster).ok_or_else(|| self.absent(name))
    }

    /// The trouble that the cluster is not registered.
    pub fn absent(&self, name: &ClusterName) -> Trouble {
        Trouble::failed(
            format!("no cluster {name} is registered in the namespace {}", self.namespace),
            "see `kubectl clusters list` for the registered names; --clusters-namespace, if they are elsewhere",
        )
    }

    /// Refuses a user that may not write the Secret, before a command creates anything elsewhere
    /// for it.
    pub async fn may_write(&self, existing: Option<&Secret>) -> Result<()> {
        let verb = if existing.is_some() { "update" } else { "create" };
        let asked = ResourceAttributes {
            verb: Some(verb.to_owned()),
            resource: Some("secrets".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: existing.map(ResourceExt::name_any),
            ..ResourceAttributes::default()
        };
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(asked), ..SelfSubjectAccessReviewSpec::default() };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.session.hub().clone());
        let answer = self.session.within(reviews.create(&PostParams::default(), &review)).await?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        let what = format!("you may not {verb} secrets in the namespace {}", self.namespace);
        Err(Trouble { exit: Exit::Hub, ..Trouble::failed(what, self.missing_right(verb)) })
    }

    /// Refuses an account on the member with `uid` that a cluster other than `name` also names:
    /// giving it rights or deleting it would affect both.
    pub async fn refuse_shared(&self, name: &str, account: &Account, uid: &str) -> Result<()> {
        let mut params = ListParams::default().labels(CREDENTIAL_TYPE_LABEL).limit(PAGE);
        for _ in 0..PAGES {
            let page = self.session.within(self.secrets.list_metadata(&params)).await;
            let page = page.map_err(|trouble| self.refused(trouble, "list"))?;
            let shares = |other: &&PartialObjectMeta<Secret>| {
                other.name_any() != name && is_named_by(other.annotations(), account, uid)
            };
            if let Some(other) = page.items.iter().find(shares) {
                let other = other.name_any();
                return Err(Trouble::usage(
                    format!("the cluster {other} uses the ServiceAccount {} of the same member", account.path()),
                    format!(
                        "if {other} is the same cluster, complete `kubectl clusters rename` or `detach --hub-only` one \
                         of the two; else choose another name than {name}"
                    ),
                ));
            }
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => params = params.continue_token(&next),
                None => return Ok(()),
            }
        }
        Err(Trouble::failed(
            format!("the list of Secrets does not end after {PAGES} pages"),
            "check the hub's API server",
        ))
    }

    /// Creates the cluster's Secret from `document`, or replaces `old` by it. Other labels and
    /// annotations of `old` stay.
    pub async fn write(&self, document: &Value, old: Option<&Secret>) -> Result<Secret> {
        let mut secret: Secret = serde_json::from_value(document.clone())
            .map_err(|_| Trouble::failed("cannot create the cluster's Secret", ""))?;
        let Some(old) = old else {
            let created = self.session.within(self.secrets.create(&PostParams::default(), &secret)).await;
            return created.map_err(|trouble| self.refused(trouble, "create"));
        };
        let keep = |new: &mut Option<BTreeMap<String, String>>, old: &BTreeMap<String, String>| {
            let new = new.get_or_insert_default();
            for (key, value) in old {
                new.entry(key.clone()).or_insert_with(|| value.clone());
            }
        };
        keep(&mut secret.metadata.labels, old.labels());
        keep(&mut secret.metadata.annotations, old.annotations());
        secret.metadata.resource_version = old.resource_version();
        secret.type_.clone_from(&old.type_);
        let replaced =
            self.session.within(self.secrets.replace(&old.name_any(), &PostParams::default(), &secret)).await;
        replaced.map_err(|trouble| self.refused(trouble, "update"))
    }

    /// Merges `patch` into the cluster's Secret.
    pub async fn patch(&self, name: &ClusterName, patch: &Value) -> Result<Secret> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.secrets.patch(name.as_str(), &params, &patch);
        self.session.within(patched).await.map_err(|trouble| self.refused(trouble, "patch"))
    }

    /// The same, if the Secret has not changed since `version`.
    pub async fn patch_at(&self, name: &ClusterName, version: &str, patch: &Value) -> Result<Secret> {
        let mut patch = patch.clone();
        // In a patch, this is a precondition: any other version is answered with 409
        // (<https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>).
        patch["metadata"]["resourceVersion"] = version.into();
        self.patch(name, &patch).await
    }

    /// Deletes this very Secret, if it has not changed since it was read.
    pub async fn delete_unchanged(&self, secret: &Secret) -> Result<()> {
        self.delete_if(secret, secret.resource_version()).await
    }

    /// Deletes this very Secret.
    pub async fn delete(&self, secret: &Secret) -> Result<()> {
        self.delete_if(secret, None).await
    }

    async fn delete_if(&self, secret: &Secret, resource_version: Option<String>) -> Result<()> {
        let preconditions = Preconditions { uid: secret.uid(), resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let deleted = self.session.within(self.secrets.delete(&secret.name_any(), &params)).await;
        deleted.map(drop).map_err(|trouble| self.refused(trouble, "delete"))
    }

    fn refused(&self, trouble: Trouble, verb: &str) -> Trouble {
        if !trouble.is_forbidden() {
            return trouble;
        }
        trouble.remedied(self.missing_right(verb))
    }

    fn missing_right(&self, verb: &str) -> String {
        format!("ask the hub's administrator for the verb {verb} on secrets in the namespace {}", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use api::secret::{MEMBER_ACCOUNT_ANNOTATION, MEMBER_UID_ANNOTATION};
    use serde_json::json;

    use super::*;

    fn secret(labels: &Value, annotations: &Value) -> Secret {
        let data = json!({"endpoint": "aHR0cHM6Ly8xMC4wLjAuNzo2NDQz"});
        serde_json::from_value(
            json!({"metadata": {"name": "c", "labels": labels, "annotations": annotations}, "data": data}),
        )
        .unwrap()
    }

    #[test]
    fn a_name_is_free_its_own_or_anothers() {
        let cluster = json!({CREDENTIAL_TYPE_LABEL: "ServiceAccountToken"});
        assert_eq!(standing(None, "u"), Standing::Free);
        assert_eq!(standing(Some(&secret(&cluster, &json!({MEMBER_UID_ANNOTATION: "u"}))), "u"), Standing::Own);
        assert_eq!(standing(Some(&secret(&cluster, &json!({}))), "u"), Standing::Unsaid);
        let Standing::Taken(why) = standing(Some(&secret(&cluster, &json!({MEMBER_UID_ANNOTATION: "v"}))), "u") else {
            panic!("free")
        };
        assert!(why.contains("https://10.0.0.7:6443"), "{why}");
        let Standing::Taken(why) = standing(Some(&secret(&json!({}), &json!({}))), "u") else { panic!("free") };
        assert!(why.contains("not a cluster"), "{why}");
    }

    #[test]
    fn an_account_is_of_one_member() {
        let account = Account::parse("cluster-gateway/berlin").unwrap();
        let annotations = |uid: &str, path: &str| {
            let all = [(MEMBER_UID_ANNOTATION, uid), (MEMBER_ACCOUNT_ANNOTATION, path)];
            all.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        };
        assert!(is_named_by(&annotations("u", &account.path()), &account, "u"));
        assert!(!is_named_by(&annotations("v", &account.path()), &account, "u"), "another member");
        assert!(!is_named_by(&annotations("u", "cluster-gateway/oslo"), &account, "u"), "another account");
    }
}
