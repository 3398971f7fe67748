//! `join`: registers a member as a cluster of the hub.

mod age;
mod direct;
mod identity;
mod tunnel;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::{ClusterEndpoint, ClusterSecret, Trust};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use serde_json::Value;

use self::direct::Direct;
use self::identity::Identity;
use super::label;
use crate::account::Account;
use crate::agent::{self, Servers};
use crate::member::{self, Member};
use crate::reach::{GatewayUser, until_answered, until_read};
use crate::registration::{Registrations, Standing, another, standing};
use crate::rights::{ROLES, Rights};
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{output, selection, span};

/// Register a member.
///
/// Creates a ServiceAccount on the member, with the rights that you choose, and registers its token
/// on the hub. Succeeds when the member has answered through the gateway. Run it again after a
/// failure to complete the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters join berlin --member-context berlin-admin --rights view
  kubectl clusters join berlin --member-kubeconfig berlin.yaml --rights ./rights.yaml -l env=prod
  kubectl clusters join berlin --endpoint https://10.0.0.7:6443     # where the gateway reaches it
  kubectl clusters join oslo --member-context oslo-admin --rights edit --tunnel    # an agent there dials out")]
pub struct Join {
    /// The cluster's name on the hub
    name: String,
    #[command(flatten)]
    member: member::Options,
    /// Rights of the gateway's callers on the member: view, edit, admin, cluster-admin, or a file
    /// with rules
    #[arg(long, value_name = "ROLE|FILE")]
    rights: Option<String>,
    /// URL at which the gateway reaches the member's API server [default: the one in your
    /// kubeconfig]; an agent dials the address that pods there use
    #[arg(long, value_name = "URL", conflicts_with = "tunnel")]
    endpoint: Option<String>,
    /// Do not let the gateway verify the member's certificate
    #[arg(long, conflicts_with = "tunnel")]
    insecure_skip_tls_verify: bool,
    /// Namespace of the ServiceAccount on the member
    #[arg(long, value_name = "NAMESPACE", default_value = "cluster-gateway")]
    account_namespace: String,
    /// Register your own credential for the member instead of a ServiceAccount's
    #[arg(long, conflicts_with_all = ["rights", "account_namespace", "tunnel"])]
    use_own_credential: bool,
    /// Label of the cluster, for selectors; may be given more than once
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE", value_parser = label::pair)]
    labels: Vec<(String, String)>,
    /// Display name of the cluster
    #[arg(long, value_name = "TEXT")]
    alias: Option<String>,
    /// Timeout for the member to answer through the gateway [default: 30s, 3m with --tunnel]
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    wait: Option<Duration>,
    #[command(flatten)]
    tunnel: tunnel::Tunnel,
}

/// Time for a member to answer, if the gateway dials it.
const ANSWERING: Duration = Duration::from_secs(30);
/// Time for an agent's image to be pulled, and for the agent to link.
const LINKING: Duration = Duration::from_mins(3);

// === impl Join ===

impl Join {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let name = selection::name(&self.name)?;
        let (kubeconfig, context) = self.member.read(session, name.as_str())?;
        let direct = if self.tunnel.wanted {
            None
        } else {
            Some(Direct::of(&kubeconfig, &context, self.endpoint.as_deref(), self.insecure_skip_tls_verify)?)
        };
        let rights = if self.use_own_credential { None } else { Some(self.rights()?) };
        if self.tunnel.wanted {
            self.tunnel.may_link(session).await?;
        }
        let registrations = Registrations::of(session).await?;
        let existing = registrations.find(&name).await?;
        let member = Member::by(session, &kubeconfig, &context).await?;
        let uid = member.uid().await?;
        refuse_taken(session, &name, existing.as_ref(), &uid).await?;
        registrations.may_write(existing.as_ref()).await?;
        age::warn_of_hub(session).await;
        // Before anything is created: a mistake here is one of the command line.
        let account = Account::of(&name, &self.account_namespace)?;
        if rights.is_some() && member.refuse_foreign(&account).await? {
            registrations.refuse_shared(name.as_str(), &account, &uid).await?;
        }
        let agent = if self.tunnel.wanted { Some(self.agent(session, &name, &member, &account).await?) } else { None };
        let identity = match &rights {
            None => Identity::own(&kubeconfig, &context)?,
            Some(rights) => Identity::made(&member, account, rights).await?,
        };
        let mut secret = self.secret(direct, &identity);
        secret.member_uid = Some(uid);
        if let (Some((servers, manifests)), Some(account)) = (agent, &identity.account) {
            let (agent, token) = self.tunnel.identity(session, &name).await?;
            secret.agent_account = Some(agent.path());
            let agents_secret = agent::secret(&account.namespace, &token, &servers);
            self.tunnel.install(&member, manifests, agents_secret, (account, &identity.owner)).await?;
        }
        let document = secret.document(Some(&registrations.namespace), name.as_str());
        let document =
            document.map_err(|error| Trouble::failed(format!("the gateway could not use this: {error}"), ""))?;
        let written = registrations.write(&document, existing.as_ref()).await?;
        output::say(&format!("Secret {}/{name} on the hub: registered", registrations.namespace));
        let user = identity.account.as_ref().map(Account::user);
        let wait = self.wait.unwrap_or(if self.tunnel.wanted { LINKING } else { ANSWERING });
        let seen = async {
            // Until then, an earlier endpoint may still answer.
            until_read(session, &name, &written.resource_version().unwrap_or_default(), wait).await?;
            until_answered(session, &name, user.as_deref(), wait).await
        };
        let seen = seen.await;
        self.done(&name, &seen.map_err(|trouble| direct::unreached(&name, &secret, trouble))?)
    }

    /// The servers that the agent links to, and its manifests.
    async fn agent(
        &self,
        session: &Session,
        name: &ClusterName,
        member: &Member,
        account: &Account,
    ) -> Result<(Servers, Vec<Value>)> {
        let servers = self.tunnel.servers(session).await?;
        self.tunnel.may_identify(session, name).await?;
        let version = member.version().await?;
        let manifests = self.tunnel.manifests(session, name, &self.account_namespace, &servers, &version).await?;
        age::warn_of_agent(&manifests);
        let named = agent::named(&account.namespace);
        member.refuse_objects(&member.claim(account), manifests.iter().chain([&named])).await?;
        Ok((servers, manifests))
    }

    fn done(&self, name: &ClusterName, seen: &GatewayUser) -> Result<ExitCode> {
        let took = span::took(seen.took);
        let joined = format!("cluster {name} joined: it answers the gateway in {took} as {}", seen.user);
        // Standard output has the manifests, for a program to read.
        if self.tunnel.print {
            output::say(&joined);
        } else {
            output::done(&joined)?;
        }
        if self.use_own_credential {
            output::say("warning: everyone with the right to this cluster on the hub now acts as you on the member");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn rights(&self) -> Result<Rights> {
        let choices = ROLES.join(", ");
        let missing = || {
            Trouble::usage(
                "--rights is missing",
                format!(
                    "give the rights of the gateway's callers on the member: {choices}, or a file with a ClusterRole"
                ),
            )
        };
        match &self.rights {
            Some(text) => Rights::read(text),
            None => Rights::read(
                &output::ask(&format!("Rights of the gateway's callers on the member ({choices}, or a file)?"))
                    .filter(|text| !text.is_empty())
                    .ok_or_else(missing)?,
            ),
        }
    }

    fn secret(&self, direct: Option<Direct>, identity: &Identity) -> ClusterSecret {
        let credential = identity.credential.clone();
        let mut secret = match direct {
            // The agent dials what the member's pods dial.
            None => {
                ClusterSecret::new(ClusterEndpoint::ClusterProxy, Trust::Bundle(identity.authority.clone()), credential)
            }
            Some(direct) => {
                let endpoint = ClusterEndpoint::at(direct.endpoint);
                let mut secret = ClusterSecret::new(endpoint, direct.trust, credential);
                secret.tls_server_name = direct.server_name;
                secret
            }
        };
        secret.labels = self.labels.iter().cloned().collect::<BTreeMap<_, _>>();
        secret.alias.clone_from(&self.alias);
        secret.member_account = identity.account.as_ref().map(Account::path);
        secret
    }
}

/// Refuses a name that belongs to another member.
pub async fn refuse_taken(session: &Session, name: &ClusterName, existing: Option<&Secret>, uid: &str) -> Result<()> {
    let why = match standing(existing, uid) {
        Standing::Free | Standing::Own => return Ok(()),
        Standing::Taken(why) => why,
        // A registration by hand does not identify its member. The member itself does.
        Standing::Unsaid => match Member::through(session, name).await?.uid().await {
            Ok(known) if known == uid => return Ok(()),
            Ok(_) => existing.map(another).unwrap_or_default(),
            Err(_) => "a cluster is registered under this name, and does not reveal its identity".to_owned(),
        },
    };
    let remedy = format!("choose another name, or `kubectl clusters detach {name}` first");
    Err(Trouble::usage(format!("the name {name} is taken: {why}"), remedy))
}
