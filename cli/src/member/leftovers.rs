//! Whether a Namespace that joins created can be deleted with the last account in it.
//!
//! An account does not own its Namespace: others may have put more into it since. It is deleted
//! only if nothing else is in it. The garbage collector then deletes it with all else, because a
//! credential that revokes itself can send no request afterwards.

use std::collections::HashSet;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, ObjectMeta};
use kube::discovery::{Discovery, Scope, verbs};

use super::Member;
use crate::account::Account;
use crate::claim::{ANNOTATION, is_ours};
use crate::trouble::Result;

/// Kinds listed at the same time.
const AT_ONCE: usize = 8;
/// Most objects of one kind that are read: a Namespace with more is in use.
const MOST: u32 = 500;
/// Most levels of owners that are followed: a Deployment's Pods are two levels below it.
const DEEPEST: usize = 8;

/// An object in the Namespace.
struct NamespacedObject {
    kind: String,
    metadata: ObjectMeta,
}

// === impl Member ===

impl Member {
    /// Makes the binding with the uid `owner` own the account's Namespace, if a join created the
    /// Namespace and it holds nothing else. Returns why the Namespace stays, if the user should
    /// know.
    pub(super) async fn release(&self, account: &Account, owner: &str) -> Result<Option<String>> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = self.ask(namespaces.get_opt(&account.namespace)).await?;
        if !found.as_ref().is_some_and(is_ours) {
            return Ok(None);
        }
        let other = match self.others(account, owner).await {
            Ok(None) => {
                let document = account.namespace_document(Some(owner));
                return self.apply(&namespaces, &account.namespace, &document).await.map(|_| None);
            }
            Ok(Some(other)) => format!("it holds {other}"),
            Err(trouble) => format!("cannot list its objects: {}", trouble.what),
        };
        Ok(Some(format!("Namespace {} on the member: stays, {other}", account.namespace)))
    }

    /// An object in the account's Namespace that is not deleted with the binding `owner`.
    async fn others(&self, account: &Account, owner: &str) -> Result<Option<String>> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let living = self.ask(bindings.list_metadata(&ListParams::default())).await?.items;
        let living = living.into_iter().filter_map(|binding| binding.metadata.uid).filter(|uid| uid != owner).collect();
        let kinds = self.listed_kinds().await?;
        let mut asked = stream::iter(kinds).map(|kind| self.found(account, kind)).buffer_unordered(AT_ONCE);
        let mut all = Vec::new();
        while let Some(found) = asked.try_next().await? {
            all.extend(found);
        }
        let claim = self.claim(account);
        let own = |found: &NamespacedObject| found.metadata.annotations.as_ref().is_some_and(|all| claim.is_among(all));
        Ok(staying(&all, own, &living)
            .map(|found| format!("{} {}", found.kind, found.metadata.name.as_deref().unwrap_or_default())))
    }

    /// Kinds of objects that a Namespace may hold.
    async fn listed_kinds(&self) -> Result<Vec<ApiResource>> {
        let discovery = self.ask(Discovery::new(self.client.clone()).run_aggregated()).await?;
        let all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
        let held = all.filter(|(kind, can)| {
            // Measurements are no objects of their own: they end with what is measured.
            can.scope == Scope::Namespaced && can.supports_operation(verbs::LIST) && kind.group != "metrics.k8s.io"
        });
        Ok(held.map(|(kind, _)| kind).collect())
    }

    async fn found(&self, account: &Account, kind: ApiResource) -> Result<Vec<NamespacedObject>> {
        let objects: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &account.namespace, &kind);
        let listed = self.ask(objects.list_metadata(&ListParams::default().limit(MOST))).await?;
        let told = |metadata| NamespacedObject { kind: kind.kind.clone(), metadata };
        Ok(listed.items.into_iter().map(|object| told(object.metadata)).collect())
    }
}

/// The first object that stays: one that is not `own`, has an owner that stays or none, and is not
/// in every Namespace anyway. `living` are the uids of the bindings that stay.
fn staying<'a>(
    all: &'a [NamespacedObject],
    own: impl Fn(&NamespacedObject) -> bool,
    living: &HashSet<String>,
) -> Option<&'a NamespacedObject> {
    let uid = |found: &NamespacedObject| found.metadata.uid.clone().unwrap_or_default();
    let mut going: HashSet<String> = all.iter().filter(|found| own(found) || is_everywhere(found)).map(uid).collect();
    for _ in 0..DEEPEST {
        let owned = all.iter().filter(|found| is_owned(found, &going, living)).map(uid);
        let more: Vec<_> = owned.filter(|uid| !going.contains(uid)).collect();
        if more.is_empty() {
            break;
        }
        going.extend(more);
    }
    all.iter().find(|found| !going.contains(&uid(found)))
}

/// Whether it has owners, and all of them are deleted now or were deleted before.
fn is_owned(found: &NamespacedObject, going: &HashSet<String>, living: &HashSet<String>) -> bool {
    let owners = found.metadata.owner_references.as_deref().unwrap_or_default();
    let goes = |uid: &String, kind: &str| {
        // A join's binding owns what the join created for it. What a deleted binding owned is being
        // deleted, too.
        going.contains(uid) || (kind == "ClusterRoleBinding" && !living.contains(uid))
    };
    !owners.is_empty() && owners.iter().all(|owner| goes(&owner.uid, &owner.kind))
}

/// What controllers create in every Namespace, and Events, which only report on other objects.
fn is_everywhere(found: &NamespacedObject) -> bool {
    let name = found.metadata.name.as_deref().unwrap_or_default();
    matches!((&*found.kind, name), ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt") | ("Event", _))
        && !found.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ANNOTATION))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(kind: &str, name: &str, owners: &[(&str, &str)]) -> NamespacedObject {
        let owners: Vec<_> = owners
            .iter()
            .map(|(kind, uid)| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": uid}))
            .collect();
        let metadata = json!({"name": name, "uid": format!("uid-{name}"), "ownerReferences": owners});
        NamespacedObject { kind: kind.to_owned(), metadata: serde_json::from_value(metadata).unwrap() }
    }

    fn left(all: &[NamespacedObject]) -> Option<&str> {
        let living = HashSet::from(["oslo".to_owned()]);
        let own = |found: &NamespacedObject| found.metadata.name.as_deref() == Some("berlin");
        staying(all, own, &living)?.metadata.name.as_deref()
    }

    #[test]
    fn what_is_of_the_account_or_of_every_namespace_does_not_keep_it() {
        let binding = [("ClusterRoleBinding", "berlin-binding")];
        let all = [
            found("Pod", "agent-1-x", &[("ReplicaSet", "uid-agent-1")]),
            found("ReplicaSet", "agent-1", &[("Deployment", "uid-agent")]),
            found("Deployment", "agent", &binding),
            found("ServiceAccount", "berlin", &[]),
            found("ServiceAccount", "default", &[]),
            found("ConfigMap", "kube-root-ca.crt", &[]),
            found("Event", "agent.1", &[]),
        ];
        assert_eq!(left(&all), None);
    }

    #[test]
    fn anything_else_keeps_it() {
        for other in [
            found("ConfigMap", "settings", &[]),
            found("ServiceAccount", "oslo", &[("ClusterRoleBinding", "oslo")]),
            found("Pod", "web", &[("ReplicaSet", "elsewhere")]),
            found("Secret", "both", &[("ClusterRoleBinding", "gone"), ("ClusterRoleBinding", "oslo")]),
        ] {
            let name = other.metadata.name.clone();
            assert_eq!(left(&[found("ServiceAccount", "berlin", &[]), other]), name.as_deref());
        }
    }
}
