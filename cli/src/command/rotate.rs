//! `rotate`: gives a cluster, and its agents, new tokens.

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
use crate::member::{Acting, Member};
use crate::reach::{until_answered, until_read};
use crate::registration::{Registrations, account, member_uid};
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{output, selection, span, target};

/// Time for the gateway to use the new token, and for the member to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Answers to wait for before and after the old tokens are revoked: each may come through another
/// replica of the gateway.
const ANSWERS: usize = 4;

/// Give a cluster a new token, and revoke the old one.
///
/// Creates a new token of the cluster's ServiceAccount, registers it, and revokes the old ones once
/// the new one works. No request fails. On the member it uses your context for it, or else the
/// registered credential, which lacks the rights after `join --rights view`. Agents that
/// `join --tunnel` created also get a new token: their pods are replaced one after the other.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters rotate berlin                 # by your context berlin, if there is one
  kubectl clusters rotate berlin --member-context berlin-admin
  kubectl clusters rotate berlin --grace 1m      # for hubs whose watches lag")]
pub struct Rotate {
    /// The cluster
    name: String,
    #[command(flatten)]
    member: Acting,
    /// Time for all replicas of the gateway to get the new token before the old ones are revoked
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
                format!("`join` did not register {name} with a ServiceAccount"),
                format!("`kubectl clusters join {name} --rights …` creates one, whose token can be rotated"),
            ));
        };
        // Before anything is created, on the hub or the member: the Secret's contents may be a
        // trick.
        let agent = target::agent_account(session, &before, &name).await?;
        let member = self.member.on(session, &name, member_uid(&before)).await?;
        target::verify(&registrations, &before, &account, &member).await?;
        let owner = member.owner(&account).await?;
        let old = member.token_secrets(&account).await?;
        let new = member.new_token(&account, &owner).await?;
        let token = STANDARD.encode(new.value.expose_secret());
        let read = before.resource_version().unwrap_or_default();
        let patched = match registrations.patch_at(&name, &read, &json!({"data": {TOKEN_KEY: token}})).await {
            Ok(patched) => patched,
            // Nothing uses the new token yet. A failure to revoke it matters less than the one that
            // led to it.
            Err(trouble) => return Err(withdrawn(&member, &account, &new.secret, trouble).await),
        };
        let version = patched.resource_version().unwrap_or_default();
        output::say(&format!("Secret {}/{}: a new token, registered", account.namespace, new.secret));
        sleep(self.grace).await;
        if let Err(trouble) = works(session, &name, &account, &version).await {
            let before = before.data.unwrap_or_default().remove(TOKEN_KEY);
            return Err(self.put_back(&registrations, &name, (&version, before), trouble).await);
        }
        // Of two concurrent rotations, only the one whose token is registered revokes other tokens.
        let now = registrations.get(&name).await?.data.unwrap_or_default().remove(TOKEN_KEY);
        refuse_overtaken(now.as_ref(), new.value.expose_secret(), &name)?;
        for secret in &old {
            let secret = secret.name_any();
            member.revoke(&account, &secret).await?;
            output::say(&format!("Secret {}/{secret}: removed, its token is revoked", account.namespace));
        }
        works(session, &name, &account, &version).await.map_err(|trouble| {
            trouble.when("the old tokens are revoked, and the cluster does not answer").remedied(format!(
                "`kubectl clusters probe {name}` names the hop; `kubectl clusters join {name}` creates what is missing"
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
        (version, before): (&str, Option<ByteString>),
        trouble: Trouble,
    ) -> Trouble {
        let trouble = trouble.when("the new token does not work");
        let Some(before) = before else { return trouble };
        let patch = json!({"data": {TOKEN_KEY: STANDARD.encode(before.0)}});
        match registrations.patch_at(name, version, &patch).await {
            Ok(_) => trouble.when("nothing was revoked, and the old token is registered again"),
            Err(worse) => worse.when(format!("{}; the old token could not be registered again", trouble.what)),
        }
    }
}

/// Revokes the new token, after the Secret could not be changed, or another writer changed it.
async fn withdrawn(member: &Member, account: &Account, secret: &str, trouble: Trouble) -> Trouble {
    let left = match member.revoke(account, secret).await {
        Ok(()) => String::new(),
        Err(_) => format!("; the new token in {}/{secret} on the member is left over", account.namespace),
    };
    let trouble = trouble.when(format!("the new token could not be registered, nothing was revoked{left}"));
    if trouble.what.contains("has been modified") {
        return trouble.remedied(
            "another process changed the cluster's Secret: check whether another rotate runs, and run the \
                       same command again",
        );
    }
    trouble
}

/// Refuses to revoke tokens if a token other than `new` is registered by now.
fn refuse_overtaken(registered: Option<&ByteString>, new: &str, name: &ClusterName) -> Result<()> {
    if registered.is_some_and(|token| token.0 == new.as_bytes()) {
        return Ok(());
    }
    Err(Trouble::failed(
        format!("another process registered another token of {name} meanwhile: nothing was revoked"),
        format!("run `kubectl clusters rotate {name}` again when no other runs: it revokes what is left over"),
    ))
}

/// Fails unless the cluster answers with the credential that its Secret has since `version`.
async fn works(session: &Session, name: &ClusterName, account: &Account, version: &str) -> Result<()> {
    for _ in 0..ANSWERS {
        until_read(session, name, version, LIMIT).await?;
        until_answered(session, name, Some(&account.user()), LIMIT).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_only_for_the_one_that_is_registered() {
        let berlin = ClusterName::parse("berlin").unwrap();
        let token = |text: &str| ByteString(text.as_bytes().to_vec());
        assert_eq!(refuse_overtaken(Some(&token("new")), "new", &berlin), Ok(()));
        for other in [Some(token("theirs")), None] {
            let trouble = refuse_overtaken(other.as_ref(), "new", &berlin).unwrap_err();
            assert!(
                trouble.what.contains("nothing was revoked") && trouble.remedy.contains("rotate berlin"),
                "{trouble}"
            );
        }
    }
}
