//! Checks that a cluster's Secret names only what belongs to the cluster, before a command acts on
//! it.
//!
//! A user that may change one Secret can write another cluster's account into it. An administrator
//! that rotates or detaches has rights on all accounts.

use api::cluster_name::ClusterName;
use api::secret::{AGENT_ACCOUNT_ANNOTATION, MEMBER_UID_ANNOTATION};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;

use crate::account::Account;
use crate::member::Member;
use crate::registration::{self, Registrations};
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{agent, namespace};

/// Refuses a member other than the registered one, and an account that another cluster also uses.
pub async fn verify(registrations: &Registrations, secret: &Secret, account: &Account, member: &Member) -> Result<()> {
    let uid = member.uid().await?;
    let name = secret.name_any();
    refuse_another(secret, &uid).map_err(|trouble| trouble.when(format!("cluster {name}")))?;
    registrations.refuse_shared(&name, account, &uid).await
}

fn refuse_another(secret: &Secret, uid: &str) -> Result<()> {
    match secret.annotations().get(MEMBER_UID_ANNOTATION) {
        Some(known) if known != uid => Err(Trouble::usage(
            "this is another member, not the registered one: its Namespace kube-system has another uid",
            "choose the member's own context with --member-context; if the member was recreated, detach it with \
             --hub-only and join it again",
        )),
        _ => Ok(()),
    }
}

/// The account of the cluster's agents on the hub. `None`: it has none.
pub async fn agent_account(session: &Session, secret: &Secret, name: &ClusterName) -> Result<Option<Account>> {
    let Some(told) = registration::agent_account(secret) else { return Ok(None) };
    let own = agent::account(name, &namespace::of_gateway(session).await?)?;
    refuse_anothers(&told, &own, name).map(|()| Some(own))
}

fn refuse_anothers(told: &Account, own: &Account, name: &ClusterName) -> Result<()> {
    if told == own {
        return Ok(());
    }
    let what = format!(
        "the Secret of {name} says that its agents are {}, and agents of {name} can only be {}",
        told.path(),
        own.path()
    );
    Err(Trouble::usage(
        what,
        format!("find out what changed its annotation {AGENT_ACCOUNT_ANNOTATION}, and correct or remove it"),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(annotations: &serde_json::Value) -> Secret {
        serde_json::from_value(json!({"metadata": {"name": "berlin", "annotations": annotations}})).unwrap()
    }

    #[test]
    fn agents_of_a_cluster_are_called_after_it() {
        let berlin = ClusterName::parse("berlin").unwrap();
        let own = agent::account(&berlin, "hub").unwrap();
        assert_eq!(refuse_anothers(&own, &own, &berlin), Ok(()));
        for told in ["hub/tunnel-agent-oslo", "cluster-gateway/local", "hub/auth-delegator", "x/tunnel-agent-berlin"] {
            let told = Account::parse(told).unwrap();
            let trouble = refuse_anothers(&told, &own, &berlin).unwrap_err();
            assert!(
                trouble.what.contains(&told.path()) && trouble.remedy.contains(AGENT_ACCOUNT_ANNOTATION),
                "{trouble}"
            );
        }
    }

    #[test]
    fn a_member_is_the_registered_one() {
        assert_eq!(refuse_another(&secret(&json!({MEMBER_UID_ANNOTATION: "u"})), "u"), Ok(()));
        assert_eq!(refuse_another(&secret(&json!({})), "u"), Ok(()), "nobody said");
        let trouble = refuse_another(&secret(&json!({MEMBER_UID_ANNOTATION: "v"})), "u").unwrap_err();
        assert!(trouble.what.contains("another member") && trouble.remedy.contains("--member-context"), "{trouble}");
    }
}
