//! Reads what the hub's Secrets and the members themselves say about clusters.

use std::collections::HashMap;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::{ALIAS_ANNOTATION, CREDENTIAL_TYPE_LABEL, ENDPOINT_TYPE_CLUSTER_PROXY, ENDPOINT_TYPE_LABEL};
use fleet::{Each, Failure, Kind, bounded};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::Deserialize;
use tokio::time::Instant;

use crate::expiry;
use crate::row::{Agents, Registered};
use crate::session::{self, Session};
use crate::text_table::cut;
use crate::trouble::Result;
use crate::{agent, namespace, registration};

/// Secrets per page, as many as client-go asks for.
const PAGE: u32 = 500;
/// Most pages that are read.
const PAGES: usize = 1000;
/// Longest version that is shown, in characters: `v1.35.4-gke.1234567` has 19.
const LONGEST_VERSION: usize = 64;
/// Largest response with the agents' Deployments, in bytes: etcd accepts no object above 1.5 MiB,
/// and an agent's Deployment has a few KiB.
const LARGEST_ANSWER: usize = 2 << 20;
/// Label that the agent's chart gives its Deployment.
const AGENTS: &str = "app.kubernetes.io/name=tunnel-agent";
/// Most Deployments of agents that are read on one member.
const MOST_RELEASES: u32 = 8;
/// Longest alias that is shown, in characters.
const LONGEST_ALIAS: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

/// Asks each cluster for its version, and those behind the tunnel for their agents.
pub fn each<'a>(
    session: &Session,
    names: Vec<ClusterName>,
    registered: &'a HashMap<String, Registered>,
) -> Each<'a, ((String, Duration), Option<Agents>)> {
    session.fleet.each(names, session.limits(), move |name, client| async move {
        let seen = version(&client).await?;
        Ok::<_, Failure>((seen, agents(&client, &name, registered.get(name.as_str())).await))
    })
}

/// The version that the API server reports, and how long the request took.
pub type Answer = std::result::Result<(String, Duration), Failure>;
/// The same, with its agents.
pub type Asked = std::result::Result<((String, Duration), Option<Agents>), Failure>;

/// The version that the API server reports, and how long the request took.
pub async fn version(client: &Client) -> Answer {
    let start = Instant::now();
    let unsaid = || Failure::own("the server reports no version: is it a Kubernetes API server?");
    let body = match session::get_small(client, "/version").await {
        // Here, a 404 does not mean that the hub has no gateway.
        Err(failure) if failure.kind == Kind::Plain(404) => return Err(unsaid()),
        answer => answer?,
    };
    let version: Version = serde_json::from_slice(&body).map_err(|_| unsaid())?;
    Ok((cut(&version.git_version, LONGEST_VERSION), start.elapsed()))
}

/// The agents of a member, as the member itself sees them: the request goes through one of them, so
/// no other source is needed. `None`: it has none, or they are unknown.
pub async fn agents(client: &Client, name: &ClusterName, registered: Option<&Registered>) -> Option<Agents> {
    let registered = registered?;
    let client = bounded(client.clone(), LARGEST_ANSWER);
    match registered.agents_in.as_deref() {
        Some(namespace) => {
            let found = Api::<Deployment>::namespaced(client, namespace).get_opt(agent::RELEASE).await.ok()??;
            Some(counted(&found))
        }
        None if registered.tunnelled => installed(client, name).await,
        None => None,
    }
}

/// Agents that were installed without a join, in any namespace.
async fn installed(client: Client, name: &ClusterName) -> Option<Agents> {
    let params = ListParams::default().labels(AGENTS).limit(MOST_RELEASES);
    let found = Api::<Deployment>::all(client).list(&params).await.ok()?;
    let own = found.items.iter().filter(|deployment| links(deployment, name)).map(counted);
    own.reduce(|one, other| Agents {
        linked: one.linked.saturating_add(other.linked),
        wanted: one.wanted.saturating_add(other.wanted),
    })
}

/// Whether its pods link the cluster `name`: a member may be registered under other names, too.
fn links(deployment: &Deployment, name: &ClusterName) -> bool {
    let flag = format!("--cluster={name}");
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.into_iter().flat_map(|pod| &pod.containers);
    containers.flat_map(|container| container.args.iter().flatten()).any(|word| *word == flag)
}

fn counted(deployment: &Deployment) -> Agents {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    Agents { linked: deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0), wanted }
}

/// What the clusters' Secrets say apart from the credentials, which are not kept.
pub async fn registered(session: &Session, selector: &str) -> Result<HashMap<String, Registered>> {
    let namespace = namespace::of_clusters(session).await?;
    let secrets: Api<Secret> = Api::namespaced(session.hub().clone(), &namespace);
    let labels = if selector.is_empty() {
        CREDENTIAL_TYPE_LABEL.to_owned()
    } else {
        format!("{CREDENTIAL_TYPE_LABEL},{selector}")
    };
    let mut params = ListParams::default().labels(&labels).limit(PAGE);
    let mut found = HashMap::new();
    for _ in 0..PAGES {
        let page = session.within(secrets.list(&params)).await?;
        found.extend(page.items.into_iter().map(|secret| (secret.name_any(), said(secret))));
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => break,
        }
    }
    Ok(found)
}

/// What a cluster's Secret says apart from the credential.
pub fn said(secret: Secret) -> Registered {
    let agents_in =
        registration::agent_account(&secret).and(registration::account(&secret)).map(|account| account.namespace);
    let rotates = registration::account(&secret).is_some();
    let expiry = expiry::registered(&secret.data.unwrap_or_default());
    let alias = secret.metadata.annotations.unwrap_or_default().remove(ALIAS_ANNOTATION);
    let alias = alias.map(|alias| cut(&alias, LONGEST_ALIAS));
    let labels = secret.metadata.labels.unwrap_or_default();
    let tunnelled = labels.get(ENDPOINT_TYPE_LABEL).is_some_and(|kind| kind == ENDPOINT_TYPE_CLUSTER_PROXY);
    let labels = labels.into_iter().filter(|(key, _)| !key.starts_with(api::GROUP)).collect();
    Registered { expiry, alias, labels, agents_in, tunnelled, rotates }
}
