//! A member's API server, as somebody who may make accounts on it.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::api::{DynamicObject, GroupVersionKind, TypeMeta};
use kube::config::Kubeconfig;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt as _};
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::account::{ACCOUNT_ANNOTATION, Account, MANAGED_BY, TOKEN_TYPE};
use crate::contexts;
use crate::rights::Rights;
use crate::session::{self, Session};
use crate::trouble::{Result, Trouble};

/// For the member's controller to put a token into a Secret.
const TOKEN_LIMIT: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Token Secrets of an account that are looked at.
const MOST: u32 = 500;
const MANAGER: &str = "kubectl-clusters";

/// How the person reaches a member.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Context of the member [default: the one called as the cluster]
    #[arg(long, value_name = "NAME")]
    pub member_context: Option<String>,
    /// Kubeconfig of the member [default: that of the hub]
    #[arg(long, value_name = "FILE")]
    pub member_kubeconfig: Option<PathBuf>,
}

/// A member.
#[derive(Clone)]
pub struct Member {
    pub client: Client,
    within: Duration,
}

/// A member's token, and what it is kept in.
pub struct Token {
    pub secret: String,
    pub value: SecretString,
    /// PEM of the authority of the member's API server, as pods see it.
    pub authority: Vec<u8>,
}

// === impl Options ===

impl Options {
    /// Whether they say anything.
    pub fn is_given(&self) -> bool {
        self.member_context.is_some() || self.member_kubeconfig.is_some()
    }

    /// The kubeconfig, and the name of the context in it.
    pub fn read(&self, session: &Session, cluster: &str) -> Result<(Kubeconfig, String)> {
        let Some(file) = &self.member_kubeconfig else {
            let name = self.member_context.as_deref().unwrap_or(cluster);
            let context = contexts::named(&session.kubeconfig, Some(name));
            let hint = "name the member's context with --member-context, or its file with --member-kubeconfig";
            let context =
                context.map_err(|trouble| Trouble { remedy: format!("{hint}; {}", trouble.remedy), ..trouble })?;
            return Ok((session.kubeconfig.clone(), context.name.clone()));
        };
        let kubeconfig = contexts::read(Some(file))?;
        let context = contexts::named(&kubeconfig, self.member_context.as_deref())?.name.clone();
        Ok((kubeconfig, context))
    }
}

// === impl Member ===

impl Member {
    /// By a context of the person.
    pub async fn by(kubeconfig: &Kubeconfig, context: &str, within: Duration) -> Result<Self> {
        let (client, _) = session::client(kubeconfig, context, within).await?;
        Ok(Self { client, within })
    }

    /// By a client: the hub has accounts of agents as a member has those of hubs.
    pub fn at(client: Client, within: Duration) -> Self {
        Self { client, within }
    }

    /// Through the gateway, as the registered credential.
    pub fn through(session: &Session, cluster: &api::cluster_name::ClusterName) -> Self {
        Self { client: session.fleet.client(cluster), within: session.options.request_timeout }
    }

    /// What tells it from every other cluster.
    pub async fn uid(&self) -> Result<String> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = self.ask(namespaces.get("kube-system")).await?;
        namespace
            .uid()
            .ok_or_else(|| Trouble::failed("its Namespace kube-system has no uid", "is it a Kubernetes API server?"))
    }

    /// As its API server says it: `v1.35.4`.
    pub async fn version(&self) -> Result<String> {
        Ok(self.ask(self.client.apiserver_version()).await?.git_version)
    }

    /// Refuses an account of this name that something else made: a detach would take it away.
    pub async fn refuse_foreign(&self, account: &Account) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &account.namespace);
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let binding = self.ask(bindings.get_opt(&account.binding())).await?;
        let found = self.ask(accounts.get_opt(&account.name)).await?;
        let foreign = [
            found.filter(|found| !is_ours(found)).map(|_| format!("ServiceAccount {}", account.path())),
            binding.filter(|found| !is_ours(found)).map(|_| format!("ClusterRoleBinding {}", account.binding())),
        ];
        match foreign.into_iter().flatten().next() {
            None => Ok(()),
            Some(what) => Err(Trouble::usage(
                format!("member: the {what} is there already, and was not made by this program"),
                "choose another --account-namespace or another name, or delete it",
            )),
        }
    }

    /// Makes the account with its rights, or corrects what is there of it. Returns the uid of the
    /// binding, which owns it.
    pub async fn make(&self, account: &Account, rights: &Rights) -> Result<String> {
        let owner = self.bind(account, rights).await?;
        if let Some(role) = account.role_document(rights, &owner) {
            self.apply::<ClusterRole>(&Api::all(self.client.clone()), &account.binding(), &role).await?;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let there = self.ask(namespaces.get_opt(&account.namespace)).await?;
        if there.as_ref().is_none_or(is_ours) {
            // A manager for each account: each owns its reference to its owner, and no other's.
            let manager = format!("{MANAGER}-{}", account.name);
            let manager = &manager[..manager.len().min(128)];
            let params = PatchParams::apply(manager).force();
            let document = account.namespace_document(Some(&owner));
            self.ask(namespaces.patch(&account.namespace, &params, &Patch::Apply(&document))).await?;
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &account.namespace);
        self.apply(&accounts, &account.name, &account.document(&owner)).await?;
        Ok(owner)
    }

    /// A binding cannot be led to another role: it is made anew, and what it owned stays.
    async fn bind(&self, account: &Account, rights: &Rights) -> Result<String> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let name = account.binding();
        if let Some(old) = self.ask(bindings.get_opt(&name)).await?
            && old.role_ref.name != account.role(rights)
        {
            let orphan =
                DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
            self.ask(bindings.delete(&name, &orphan)).await?;
            self.until_gone(&bindings, &name).await?;
        }
        let binding = self.apply(&bindings, &name, &account.binding_document(rights)).await?;
        binding.uid().ok_or_else(|| Trouble::failed("the binding that was made has no uid", ""))
    }

    async fn until_gone(&self, bindings: &Api<ClusterRoleBinding>, name: &str) -> Result<()> {
        let end = Instant::now() + TOKEN_LIMIT;
        while self.ask(bindings.get_opt(name)).await?.is_some() {
            if Instant::now() > end {
                let what = format!("the ClusterRoleBinding {name} does not go");
                return Err(Trouble::failed(what, "see its finalizers, and run the same command again"));
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// The newest token of the account that is there already, or a new one.
    pub async fn token(&self, account: &Account, owner: &str) -> Result<Token> {
        let mut secrets = self.token_secrets(account).await?;
        match secrets.pop() {
            Some(newest) => self.filled(account, newest.name_any()).await,
            None => self.new_token(account, owner).await,
        }
    }

    /// A new one.
    pub async fn new_token(&self, account: &Account, owner: &str) -> Result<Token> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        let document = serde_json::from_value(account.token_document(owner));
        let document: Secret =
            document.map_err(|error| Trouble::failed(format!("cannot make a Secret: {error}"), ""))?;
        let made = self.ask(secrets.create(&PostParams::default(), &document)).await?;
        self.filled(account, made.name_any()).await
    }

    /// The account's token Secrets that this program made, the newest last.
    pub async fn token_secrets(&self, account: &Account) -> Result<Vec<Secret>> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        let params = ListParams::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)).limit(MOST);
        let list = self.ask(secrets.list(&params.fields(&format!("type={TOKEN_TYPE}")))).await?;
        let own = |secret: &Secret| secret.annotations().get(ACCOUNT_ANNOTATION) == Some(&account.name);
        let mut own: Vec<_> = list.items.into_iter().filter(own).collect();
        own.sort_by_key(|secret| (secret.creation_timestamp(), secret.name_any()));
        Ok(own)
    }

    /// The uid of the account's binding, which owns it.
    pub async fn owner(&self, account: &Account) -> Result<String> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let binding = self.ask(bindings.get_opt(&account.binding())).await?;
        binding.and_then(|binding| binding.uid()).ok_or_else(|| {
            let what = format!("member: there is no ClusterRoleBinding {}", account.binding());
            Trouble::failed(what, format!("`kubectl clusters join {}` makes it again", account.name))
        })
    }

    /// The account that a binding of this program's is for; `None`: there is no such binding.
    pub async fn account(&self, binding: &str) -> Result<Option<Account>> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let found = self.ask(bindings.get_opt(binding)).await?;
        let subject = found.filter(is_ours).and_then(|binding| binding.subjects?.into_iter().next());
        Ok(subject.and_then(|subject| Some(Account { namespace: subject.namespace?, name: subject.name })))
    }

    /// Deletes a token Secret, which ends its token.
    pub async fn revoke(&self, account: &Account, secret: &str) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        self.gone(secrets.delete(secret, &DeleteParams::default())).await
    }

    /// Deletes the account with all that belongs to it. Nothing, if it is not there.
    pub async fn remove(&self, account: &Account) -> Result<()> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        self.gone(bindings.delete(&account.binding(), &DeleteParams::background())).await
    }

    async fn gone<T>(&self, deleted: impl Future<Output = kube::Result<T>>) -> Result<()> {
        let outcome = async {
            match deleted.await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                outcome => outcome.map(drop),
            }
        };
        self.ask(outcome).await
    }

    async fn filled(&self, account: &Account, secret: String) -> Result<Token> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        let end = Instant::now() + TOKEN_LIMIT;
        loop {
            let mut data = self.ask(secrets.get(&secret)).await?.data.unwrap_or_default();
            if let Some(token) = data.remove("token").and_then(|token| String::from_utf8(token.0).ok()) {
                let authority = data.remove("ca.crt").map(|pem| pem.0).unwrap_or_default();
                return Ok(Token { secret, value: token.into(), authority });
            }
            if Instant::now() > end {
                let what = format!("the member put no token into the Secret {}/{secret}", account.namespace);
                let remedy = "see that its kube-controller-manager runs, and run the same command again";
                return Err(Trouble::failed(what, remedy));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn apply<K>(&self, api: &Api<K>, name: &str, document: &Value) -> Result<K>
    where
        K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        self.ask(api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(document))).await
    }

    /// Makes or corrects an object of any kind that the member has.
    pub async fn apply_any(&self, document: &Value) -> Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = TypeMeta { api_version: text(&document["apiVersion"]), kind: text(&document["kind"]) };
        let kind = GroupVersionKind::try_from(&kind)
            .map_err(|_| Trouble::failed("a manifest has no apiVersion", "see the chart"))?;
        let known = self.ask(pinned_kind(&self.client, &kind)).await;
        let (resource, capabilities) = known.map_err(|trouble| {
            if !trouble.what.contains("404") {
                return trouble;
            }
            let what = format!("member: it has no {} of {}", kind.kind, kind.api_version());
            Trouble::failed(what, "choose another chart, or its values, so that the member knows all its kinds")
        })?;
        let namespace = text(&document["metadata"]["namespace"]);
        let objects: Api<DynamicObject> = match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        };
        let (name, params) = (text(&document["metadata"]["name"]), PatchParams::apply(MANAGER).force());
        self.ask(objects.patch(&name, &params, &Patch::Apply(document))).await.map(drop)
    }

    /// What was asked, within the time for one request.
    pub async fn ask<T>(&self, asked: impl Future<Output = kube::Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.within, asked).await {
            Ok(outcome) => outcome.map_err(on_member),
            Err(_) => Err(Trouble::failed(
                "the member does not answer in time",
                "see that it runs, and that you reach it from here",
            )),
        }
    }
}

/// Whether this program made it.
fn is_ours<K: kube::Resource>(object: &K) -> bool {
    object.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1)
}

/// The failure of a request to a member: nothing in it is about the hub.
fn on_member(error: kube::Error) -> Trouble {
    let trouble = Trouble::from(error);
    let remedy = if trouble.what.contains("is forbidden") {
        "use a context of the member that may do it: --member-context, --member-kubeconfig"
    } else if trouble.what.contains("Unauthorized") {
        "renew the credential for the member in your kubeconfig"
    } else {
        "see that `kubectl --context <member> get namespace kube-system` works from here"
    };
    Trouble { exit: crate::trouble::Exit::Failed, remedy: remedy.to_owned(), what: format!("member: {}", trouble.what) }
}
