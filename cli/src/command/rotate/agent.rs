//! Gives the agents of a cluster a new token.

use std::time::Duration;

use api::cluster_name::ClusterName;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::account::Account;
use crate::agent::{RELEASE, TOKEN};
use crate::member::Member;
use crate::output;
use crate::session::LOOK_AGAIN;
use crate::trouble::{Result, Trouble};

/// Time for the agents' pods to be replaced, one after the other.
const ROLLOUT: Duration = Duration::from_mins(5);
/// Time for the hub to note that a token was used.
const NOTED: Duration = Duration::from_secs(30);
/// Label that API servers put on the Secret of a token that was used (KEP-2799, Kubernetes 1.26).
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// Annotation that `kubectl rollout restart` sets in the pods' template.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// Gives the agents in the namespace of `joined`, an account on the member, a new token of
/// `account` on the hub. Revokes the old tokens when the agents have linked with the new one.
/// Returns how many it revoked.
pub async fn rotate(
    (hub, account): (&Member, &Account),
    (member, joined): (&Member, &Account),
    name: &ClusterName,
) -> Result<usize> {
    let namespace = &joined.namespace;
    let deployments: Api<Deployment> = Api::namespaced(member.client.clone(), namespace);
    let Some(deployment) = member.ask(deployments.get_opt(RELEASE)).await? else {
        output::say(&format!(
            "there is no Deployment {namespace}/{RELEASE} on the member: its agents keep their token"
        ));
        return Ok(0);
    };
    let secrets: Api<Secret> = Api::namespaced(member.client.clone(), namespace);
    let secret = member.ask(secrets.get_opt(RELEASE)).await?;
    let claim = member.claim(joined);
    if !claim.is_named_by(&deployment) || !secret.is_some_and(|secret| claim.is_named_by(&secret)) {
        return Err(Trouble::failed(
            format!(
                "the Deployment or the Secret {namespace}/{RELEASE} on the member does not belong to {name}'s agents"
            ),
            format!("its agents keep their token; `kubectl clusters join {name} --tunnel` names the conflict"),
        ));
    }
    let owner = hub.owner(account).await?;
    let old = hub.token_secrets(account).await?;
    let new = hub.new_token(account, &owner).await?;
    let token = json!({"stringData": {TOKEN: new.value.expose_secret()}});
    member.ask(secrets.patch(RELEASE, &PatchParams::default(), &Patch::Merge(token))).await?;
    output::say(&format!("Secret {namespace}/{RELEASE} on the member: a new token; its agents are replaced"));
    // Running pods see a changed Secret after a minute or two, each at its own time. New pods see
    // it at once.
    restart(member, &deployments).await?;
    used(hub, account, &new.secret, name).await?;
    revoke(hub, account, &old).await?;
    Ok(old.len())
}

async fn revoke(hub: &Member, account: &Account, tokens: &[Secret]) -> Result<()> {
    for secret in tokens {
        hub.revoke(account, &secret.name_any()).await?;
        output::say(&format!(
            "Secret {}/{} on the hub: removed, its token is revoked",
            account.namespace,
            secret.name_any()
        ));
    }
    Ok(())
}

async fn restart(member: &Member, deployments: &Api<Deployment>) -> Result<()> {
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: api::time::now()}}}}});
    let changed = member.ask(deployments.patch(RELEASE, &PatchParams::default(), &Patch::Merge(patch))).await?;
    let generation = changed.metadata.generation.unwrap_or_default();
    let end = Instant::now() + ROLLOUT;
    loop {
        // Requests to the member may go through the agents that are being replaced, so a failure
        // does not end the wait.
        let seen = member.ask(deployments.get(RELEASE)).await;
        if seen.as_ref().is_ok_and(|deployment| is_replaced(deployment, generation)) {
            return Ok(());
        }
        if Instant::now() > end {
            let trouble = seen.err().unwrap_or_else(|| Trouble::failed("the new agents are not ready", ""));
            return Err(trouble.remedied("see the agents' pods and their log on the member; the old token still works"));
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Whether the rollout is complete, as `kubectl rollout status` judges it.
fn is_replaced(deployment: &Deployment, generation: i64) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let DeploymentStatus { observed_generation, updated_replicas, ready_replicas, replicas, .. } = status;
    observed_generation >= Some(generation)
        && [updated_replicas, ready_replicas, replicas].iter().all(|count| count.unwrap_or(0) == wanted)
}

/// Waits until the hub has noted a use of the new token.
async fn used(hub: &Member, account: &Account, secret: &str, name: &ClusterName) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(hub.client.clone(), &account.namespace);
    let end = Instant::now() + NOTED;
    while !hub.ask(secrets.get(secret)).await?.labels().contains_key(LAST_USED) {
        if Instant::now() > end {
            return Err(Trouble::failed(
                "no agent has linked with the new token; the old one still works",
                format!("see the agents' log on the member, and `kubectl clusters probe {name}`"),
            ));
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_replaced_when_all_are_new_and_ready() {
        let deployment = |observed: i64, updated: i32, ready: i32, all: i32| -> Deployment {
            let status = json!({"observedGeneration": observed, "updatedReplicas": updated,
                "readyReplicas": ready, "replicas": all});
            let spec = json!({"replicas": 2, "selector": {}, "template": {}});
            serde_json::from_value(json!({"metadata": {}, "spec": spec, "status": status})).unwrap()
        };
        assert!(is_replaced(&deployment(4, 2, 2, 2), 4));
        for (observed, updated, ready, all) in [(3, 2, 2, 2), (4, 1, 2, 2), (4, 2, 1, 2), (4, 2, 2, 3)] {
            assert!(!is_replaced(&deployment(observed, updated, ready, all), 4), "{observed} {updated} {ready} {all}");
        }
    }
}
