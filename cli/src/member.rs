//! A member's API server, for a user that may create accounts on it.

mod accounts;
mod acting;
mod leftovers;
mod objects;
mod tokens;

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use kube::config::Kubeconfig;
use kube::{Client, ResourceExt as _};
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::acting::Acting;
use crate::contexts;
use crate::session::{self, Session};
use crate::trouble::{Result, Trouble};

/// Time for the member's controller to write a token into a Secret.
const TOKEN_LIMIT: Duration = Duration::from_secs(30);
const MANAGER: &str = "kubectl-clusters";

/// How the person reaches a member that is to be registered.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Context of the member [default: the context with the cluster's name]
    #[arg(long, value_name = "NAME")]
    pub member_context: Option<String>,
    /// Kubeconfig of the member [default: that of the hub]
    #[arg(long, value_name = "FILE")]
    pub member_kubeconfig: Option<PathBuf>,
}

/// A member, for one hub.
#[derive(Clone)]
pub struct Member {
    pub client: Client,
    within: Duration,
    /// Uid of the hub's Namespace `kube-system`.
    hub: String,
}

/// A token of an account, and the Secret that holds it.
pub struct Token {
    pub secret: String,
    pub value: SecretString,
    /// CA of the member's API server as pods see it, in PEM.
    pub authority: Vec<u8>,
}

// === impl Options ===

impl Options {
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
    /// Reaches the member with one of the person's contexts.
    pub async fn by(session: &Session, kubeconfig: &Kubeconfig, context: &str) -> Result<Self> {
        let (client, _) = session::client(kubeconfig, context, session.options.request_timeout).await?;
        Self::with(session, client).await
    }

    /// The hub itself: it has accounts of agents, as a member has accounts of hubs.
    pub async fn hub(session: &Session) -> Result<Self> {
        Self::with(session, session.hub().clone()).await
    }

    /// Reaches the member through the gateway, with the registered credential.
    pub async fn through(session: &Session, cluster: &api::cluster_name::ClusterName) -> Result<Self> {
        Self::with(session, session.fleet.client(cluster)).await
    }

    async fn with(session: &Session, client: Client) -> Result<Self> {
        Ok(Self { client, within: session.options.request_timeout, hub: session.hub_uid().await?.to_owned() })
    }

    /// Identifies the cluster: the uid of its Namespace `kube-system`.
    pub async fn uid(&self) -> Result<String> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = self.ask(namespaces.get("kube-system")).await?;
        namespace
            .uid()
            .ok_or_else(|| Trouble::failed("its Namespace kube-system has no uid", "is it a Kubernetes API server?"))
    }

    /// The version that its API server reports: `v1.35.4`.
    pub async fn version(&self) -> Result<String> {
        Ok(self.ask(self.client.apiserver_version()).await?.git_version)
    }

    async fn apply<K>(&self, api: &Api<K>, name: &str, document: &Value) -> Result<K>
    where
        K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        self.ask(api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(document))).await
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

    /// Awaits `asked`, within the time limit of one request.
    pub async fn ask<T>(&self, asked: impl Future<Output = kube::Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.within, asked).await {
            Ok(outcome) => outcome.map_err(on_member),
            Err(_) => Err(Trouble::failed(
                "the member does not answer in time",
                "check that it runs, and that you can reach it from here",
            )),
        }
    }
}

/// The failure of a request to a member. Its remedy is about the member, never the hub.
fn on_member(error: kube::Error) -> Trouble {
    let trouble = Trouble::from(error);
    let remedy = if trouble.is_forbidden() {
        "use a context of the member with that right: --member-context, --member-kubeconfig"
    } else if trouble.what.contains("Unauthorized") {
        "renew the credential for the member in your kubeconfig"
    } else {
        "check that `kubectl --context <member> get namespace kube-system` works from here"
    };
    Trouble { exit: crate::trouble::Exit::Failed, remedy: remedy.to_owned(), what: format!("member: {}", trouble.what) }
}
