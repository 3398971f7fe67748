//! `rotate`: another token for a cluster, and for its agents.

mod agent;

use std::process::ExitCode;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::TOKEN_KEY;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use kube::ResourceExt as _;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::sleep;

use crate::account::Account;
use crate::member::{self, Member};
use crate::reach::{until_answered, until_read};
use crate::registration::{Registrations, account};
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{output, selection, span, target};

/// For the gateway to use the new token, and for the member to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Answers seen before and after the old tokens end: each may come by another replica.
const ANSWERS: usize = 4;

/// Makes a new token of the cluster's ServiceAccount, registers it, and ends the old ones when the
/// new one was seen to work. No request fails for it. On the member it acts as the registered
/// credential, unless you name a context. Agents that `join --tunnel` made get a new token too:
/// their pods are replaced, one after the other.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters rotate berlin --member-context berlin-admin
  kubectl clusters rotate berlin --grace 1m      # for hubs that are slow to tell their watchers")]
pub struct Rotate {
    /// The cluster
    name: String,
    #[command(flatten)]
    member: member::Options,
    /// For all replicas of the gateway to have the new token before the old ones end
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    grace: Duration,
}

// === impl Rotate ===

impl Rotate {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let name = selection::name(&self.name)?;
        let registrations = Registrations::of(session).await?;
        let before = registrations.get(&name).await?;
        let Some(account) = account(&before) else {
            return Err(Trouble::usage(
                format!("{name} was not registered by `join` with a ServiceAccount of its own"),
                format!("`kubectl clusters join {name} --rights …` gives it one, whose token can be rotated"),
            ));
        };
        // Before anything is made, on either side: what the Secret says may be somebody's trick.
        let agent = target::agent_account(session, &before, &name).await?;
        let member = self.member(session, &name).await?;
        target::verify(&registrations, &before, &account, &member).await?;
        let owner = member.owner(&account).await?;
        let old = member.token_secrets(&account).await?;
        let new = member.new_token(&account, &owner).await?;
        let token = STANDARD.encode(new.value.expose_secret());
        let patched = registrations.patch(&name, &json!({"data": {TOKEN_KEY: token}})).await?;
        let version = patched.resource_version().unwrap_or_default();
        output::say(&format!("Secret {}/{}: a new token, registered", account.namespace, new.secret));
        sleep(self.grace).await;
        if let Err(trouble) = works(session, &name, &account, &version).await {
            let before = before.data.unwrap_or_default().remove(TOKEN_KEY);
            return Err(self.put_back(&registrations, &name, before, trouble).await);
        }
        for secret in &old {
            let secret = secret.name_any();
            member.revoke(&account, &secret).await?;
            output::say(&format!("Secret {}/{secret}: removed, its token is void", account.namespace));
        }
        works(session, &name, &account, &version).await.map_err(|trouble| {
            trouble.when("the old tokens are void, and the cluster does not answer").remedied(format!(
                "`kubectl clusters probe {name}` tells where; `kubectl clusters join {name}` makes what is missing"
            ))
        })?;
        let of_agents = match agent {
            Some(agent) => agent::rotate((&Member::hub(session).await?, &agent), (&member, &account), &name).await?,
            None => 0,
        };
        output::print(&format!(
            "cluster {name}: rotated, {} ended\n",
            output::count(old.len() + of_agents, "old token")
        ))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn put_back(
        &self,
        registrations: &Registrations,
        name: &ClusterName,
        before: Option<ByteString>,
        trouble: Trouble,
    ) -> Trouble {
        let trouble = trouble.when("the new token does not work");
        let Some(before) = before else { return trouble };
        match registrations.patch(name, &json!({"data": {TOKEN_KEY: STANDARD.encode(before.0)}})).await {
            Ok(_) => trouble.when("nothing was revoked, and the old token is registered again"),
            Err(worse) => worse.when(format!("{}; the old token could not be registered again", trouble.what)),
        }
    }

    async fn member(&self, session: &Session, name: &ClusterName) -> Result<Member> {
        if !self.member.is_given() {
            return Member::through(session, name).await;
        }
        let (kubeconfig, context) = self.member.read(session, name.as_str())?;
        Member::by(session, &kubeconfig, &context).await
    }
}

/// Whether the cluster answers with the credential of its Secret since `version`.
async fn works(session: &Session, name: &ClusterName, account: &Account, version: &str) -> Result<()> {
    for _ in 0..ANSWERS {
        until_read(session, name, version, LIMIT).await?;
        until_answered(session, name, Some(&account.user()), LIMIT).await?;
    }
    Ok(())
}
