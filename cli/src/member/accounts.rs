//! The accounts that hubs have on a member: creates, finds and removes those of one hub.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Preconditions, PropagationPolicy};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Member, TOKEN_LIMIT};
use crate::account::Account;
use crate::claim::{Claim, is_ours};
use crate::rights::Rights;
use crate::session::LOOK_AGAIN;
use crate::trouble::{Result, Trouble};

// === impl Member ===

impl Member {
    /// The hub's claim on the objects of the account.
    pub fn claim(&self, account: &Account) -> Claim {
        Claim::new(&self.hub, account)
    }

    /// Refuses an account of this name that does not belong to the hub: a join would give it other
    /// rights, and a detach would delete it. Returns whether the hub's own account exists.
    pub async fn refuse_foreign(&self, account: &Account) -> Result<bool> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &account.namespace);
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let binding = self.binding(account).await?;
        let found = self.ask(accounts.get_opt(&account.name)).await?;
        let role = self.ask(roles.get_opt(&account.binding())).await?;
        let claim = self.claim(account);
        let foreign = [
            found.as_ref().and_then(|found| claim.refusal(found)).map(|why| ("ServiceAccount", account.path(), why)),
            role.as_ref().and_then(|found| claim.refusal(found)).map(|why| ("ClusterRole", account.binding(), why)),
        ];
        match foreign.into_iter().flatten().next() {
            None => Ok(binding.is_some() || found.is_some()),
            Some((kind, name, why)) => Err(foreign_to(&format!("{kind} {name}"), why)),
        }
    }

    /// The account's binding, if it exists. Fails if it belongs to another.
    async fn binding(&self, account: &Account) -> Result<Option<ClusterRoleBinding>> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let Some(found) = self.ask(bindings.get_opt(&account.binding())).await? else { return Ok(None) };
        let what = format!("ClusterRoleBinding {}", account.binding());
        if let Some(why) = self.claim(account).refusal(&found) {
            return Err(foreign_to(&what, why));
        }
        match subject(&found) {
            Some(subject) if subject == *account => Ok(Some(found)),
            Some(other) => Err(foreign_to(&what, &format!("is for the ServiceAccount {}", other.path()))),
            None => Err(foreign_to(&what, "is not for one ServiceAccount")),
        }
    }

    /// Creates the account with its rights, or corrects what exists of it. Returns the uid of the
    /// binding, which owns it.
    pub async fn make(&self, account: &Account, rights: &Rights) -> Result<String> {
        let owner = self.bind(account, rights).await?;
        if let Some(role) = account.role_document(rights, &owner) {
            self.claimed(&Api::<ClusterRole>::all(self.client.clone()), &account.binding(), account, role).await?;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let there = self.ask(namespaces.get_opt(&account.namespace)).await?;
        if there.as_ref().is_none_or(is_ours) {
            self.apply(&namespaces, &account.namespace, &account.namespace_document(None)).await?;
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &account.namespace);
        self.claimed(&accounts, &account.name, account, account.document(&owner)).await?;
        Ok(owner)
    }

    /// Creates or corrects the binding. A binding cannot change its role: with another role, it is
    /// deleted and created again, and what it owned stays.
    async fn bind(&self, account: &Account, rights: &Rights) -> Result<String> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let name = account.binding();
        if let Some(old) = self.binding(account).await?
            && old.role_ref.name != account.role(rights)
        {
            let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..this(&old) };
            self.gone(bindings.delete(&name, &orphan)).await?;
            self.until_gone(&bindings, &name).await?;
        }
        let binding = self.claimed(&bindings, &name, account, account.binding_document(rights)).await?;
        binding.uid().ok_or_else(|| Trouble::failed("the created binding has no uid", ""))
    }

    async fn until_gone(&self, bindings: &Api<ClusterRoleBinding>, name: &str) -> Result<()> {
        let end = Instant::now() + TOKEN_LIMIT;
        while self.ask(bindings.get_opt(name)).await?.is_some() {
            if Instant::now() > end {
                let what = format!("the ClusterRoleBinding {name} is not removed");
                return Err(Trouble::failed(what, "see its finalizers, and run the same command again"));
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// The uid of the account's binding, which owns it.
    pub async fn owner(&self, account: &Account) -> Result<String> {
        self.binding(account).await?.and_then(|binding| binding.uid()).ok_or_else(|| {
            let what = format!("member: there is no ClusterRoleBinding {}", account.binding());
            Trouble::failed(what, format!("`kubectl clusters join {}` creates it again", account.name))
        })
    }

    /// The account that the hub's binding of this name is for. `None`: the hub has no such binding.
    pub async fn account(&self, binding: &str) -> Result<Option<Account>> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let Some(found) = self.ask(bindings.get_opt(binding)).await? else { return Ok(None) };
        let own = |account: &Account| account.binding() == binding && self.claim(account).is_on(&found);
        Ok(subject(&found).filter(own))
    }

    /// Deletes the account with all that belongs to it, if it exists. Returns what stays, if the
    /// user should know.
    pub async fn remove(&self, account: &Account) -> Result<Option<String>> {
        let Some(binding) = self.binding(account).await? else { return Ok(None) };
        let stays = self.release(account, &binding.uid().unwrap_or_default()).await?;
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let background = DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..this(&binding) };
        self.gone(bindings.delete(&account.binding(), &background)).await?;
        Ok(stays)
    }

    async fn claimed<K>(&self, api: &Api<K>, name: &str, account: &Account, mut document: Value) -> Result<K>
    where
        K: Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
    {
        self.claim(account).put_on(&mut document);
        self.apply(api, name, &document).await
    }
}

/// The account that a binding is for, if it is for one alone.
fn subject(binding: &ClusterRoleBinding) -> Option<Account> {
    let [subject] = binding.subjects.as_deref()? else { return None };
    let namespace = subject.namespace.clone().filter(|_| subject.kind == "ServiceAccount")?;
    Some(Account { namespace, name: subject.name.clone() })
}

/// Deletes this very object, not another that has taken its name since.
fn this(binding: &ClusterRoleBinding) -> DeleteParams {
    let preconditions = Preconditions { uid: binding.uid(), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

fn foreign_to(what: &str, why: &str) -> Trouble {
    Trouble::usage(
        format!("member: the {what} exists, and {why}"),
        "choose another name or another --account-namespace, or delete it there if it is not needed",
    )
}
