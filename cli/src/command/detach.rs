//! `detach`: removes a cluster from the hub.

use std::process::ExitCode;

use api::cluster_name::ClusterName;
use k8s_openapi::api::core::v1::Secret;

use crate::account::Account;
use crate::member::{Acting, Member};
use crate::registration::{Registrations, account, is_cluster, member_uid};
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{agent, namespace, output, selection, target};

/// Remove a cluster from the hub, and what `join` created from the member.
///
/// Removes the cluster's Secret from the hub, and the ServiceAccount that `join` created from the
/// member. Shows both and asks for confirmation. On the member it uses your context for it, or else
/// the registered credential, which lacks the rights after `join --rights view`. With a context
/// that you name, it also removes leftovers of an unfinished `join`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters detach berlin                 # by your context berlin, if there is one
  kubectl clusters detach berlin --member-context berlin-admin --yes
  kubectl clusters detach berlin --hub-only --yes    # the member is gone")]
pub struct Detach {
    /// The cluster
    name: String,
    #[command(flatten)]
    member: Acting,
    /// Change nothing on the member
    #[arg(long, conflicts_with_all = ["member_context", "member_kubeconfig"])]
    hub_only: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// What exists of a cluster.
struct Parts {
    secret: Option<Secret>,
    /// The account on the member.
    account: Option<Account>,
    /// The account of its agents on the hub.
    agent: Option<Account>,
}

// === impl Detach ===

impl Detach {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let name = selection::name(&self.name)?;
        let registrations = Registrations::of(session).await?;
        let found = registrations.find(&name).await?.filter(is_cluster);
        let parts = match found {
            Some(secret) => Parts::registered(secret, self.hub_only, session, &name).await?,
            // What is left of an unfinished join.
            None => match Parts::left(&name, self.member.given(session, &name).await?.as_ref(), session).await? {
                Some(left) => left,
                None => return Err(registrations.absent(&name)),
            },
        };
        parts.describe(&registrations.namespace, &name).iter().for_each(|line| output::say(line));
        if !self.yes {
            confirm(&name)?;
        }
        if let Some(account) = &parts.account {
            let removed = self.remove(session, &registrations, &name, &parts, account).await;
            let stays = removed.map_err(|trouble| {
                let remedy = format!("{}; or change nothing on the member with --hub-only", trouble.remedy);
                trouble.when("nothing was removed").remedied(remedy)
            })?;
            output::say(&format!("ClusterRoleBinding {} on the member: removed, with what it owns", account.binding()));
            if let Some(stays) = stays {
                output::say(&stays);
            }
        }
        if let Some(agent) = &parts.agent {
            Member::hub(session).await?.remove(agent).await?;
            output::say(&format!("ClusterRoleBinding {} on the hub: removed, with what it owns", agent.binding()));
        }
        if let Some(secret) = &parts.secret {
            registrations.delete(secret).await?;
        }
        output::print(&format!("cluster {name} detached\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Removes the account from the member, if it is the registered member. Returns what stays.
    async fn remove(
        &self,
        session: &Session,
        registrations: &Registrations,
        name: &ClusterName,
        parts: &Parts,
        account: &Account,
    ) -> Result<Option<String>> {
        let member = self.member.on(session, name, parts.secret.as_ref().and_then(member_uid)).await?;
        if let Some(secret) = &parts.secret {
            target::verify(registrations, secret, account, &member).await?;
        }
        member.remove(account).await
    }
}

// === impl Parts ===

impl Parts {
    async fn registered(secret: Secret, hub_only: bool, session: &Session, name: &ClusterName) -> Result<Self> {
        let account = account(&secret).filter(|_| !hub_only);
        let agent = match target::agent_account(session, &secret, name).await? {
            Some(agent) => Some(agent),
            // What is left of an unfinished `join --tunnel`, if another join followed it.
            None => agent_left(session, name).await?,
        };
        Ok(Self { account, agent, secret: Some(secret) })
    }

    /// What exists of a cluster that is not registered. `None`: nothing.
    async fn left(name: &ClusterName, member: Option<&Member>, session: &Session) -> Result<Option<Self>> {
        let account = match member {
            Some(member) => member.account(&Account::of(name, "")?.binding()).await?,
            None => None,
        };
        let agent = agent_left(session, name).await?;
        let any = account.is_some() || agent.is_some();
        Ok(any.then_some(Self { secret: None, account, agent }))
    }

    fn describe(&self, namespace: &str, name: &ClusterName) -> Vec<String> {
        let secret = self.secret.as_ref().map(|_| format!("  on the hub: Secret {namespace}/{name}"));
        let agent = self.agent.as_ref().map(|agent| {
            format!("  on the hub: the agent's ServiceAccount {}, with its token and permission", agent.path())
        });
        let on_member = self.account.as_ref().map_or_else(|| "nothing".to_owned(), describe);
        let installed = self.account.as_ref().zip(self.agent.as_ref()).map(|(account, _)| {
            format!(
                "  on the member: the agent's Deployment, PodDisruptionBudget, ServiceAccount and Secret {}/{}",
                account.namespace,
                agent::RELEASE
            )
        });
        let account = Some(format!("  on the member: {on_member}"));
        let lines = [Some("This removes".to_owned()), secret, agent, installed, account];
        lines.into_iter().flatten().collect()
    }
}

/// The account of the cluster's agents on the hub. `None` also if it cannot be looked up: a user
/// that may not look for it has none to remove.
async fn agent_left(session: &Session, name: &ClusterName) -> Result<Option<Account>> {
    let look = async {
        let own = agent::account(name, &namespace::of_gateway(session).await?)?;
        let found = Member::hub(session).await?.account(&own.binding()).await?;
        Ok::<_, Trouble>(found.filter(|found| *found == own))
    };
    Ok(look.await.unwrap_or_default())
}

fn describe(account: &Account) -> String {
    let Account { namespace, .. } = account;
    format!(
        "ServiceAccount {} with its tokens, ClusterRoleBinding {} with its own ClusterRole, and the Namespace \
         {namespace} if `join` created it and nothing else is in it",
        account.path(),
        account.binding()
    )
}

fn confirm(name: &ClusterName) -> Result<()> {
    match output::ask("Remove them? [y/N]").as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(Trouble::failed("nothing was removed", "")),
        None => Err(Trouble::usage(
            "detach needs confirmation, and standard input is not a terminal",
            format!("confirm with --yes: kubectl clusters detach {name} --yes"),
        )),
    }
}
