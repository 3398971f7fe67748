//! What a look at the hub and at each cluster shows.

use std::collections::HashMap;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::{ALIAS_ANNOTATION, CREDENTIAL_TYPE_LABEL};
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

/// Secrets in one page, as client-go asks for them.
const PAGE: u32 = 500;
/// Pages of them.
const PAGES: usize = 1000;
/// Longest version that is shown, in characters: `v1.35.4-gke.1234567` has 19.
const LONGEST_VERSION: usize = 64;
/// Longest answer with one Deployment, in bytes: etcd takes none of more than 1.5 MiB.
const LARGEST_OBJECT: usize = 2 << 20;
/// Longest alias that is shown, in characters.
const LONGEST_ALIAS: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

/// Asks each cluster for its version, and those that a join gave agents for these.
pub fn each<'a>(
    session: &Session,
    names: Vec<ClusterName>,
    registered: &'a HashMap<String, Registered>,
) -> Each<'a, ((String, Duration), Option<Agents>)> {
    session.fleet.each(names, session.limits(), move |name, client| async move {
        let seen = version(&client).await?;
        Ok::<_, Failure>((seen, agents(&client, registered.get(name.as_str())).await))
    })
}

/// What its API server says of its version, and how long that took.
pub type Answer = std::result::Result<(String, Duration), Failure>;
/// The same, with its agents.
pub type Asked = std::result::Result<((String, Duration), Option<Agents>), Failure>;

/// What the API server says of its version, and how long that took.
pub async fn version(client: &Client) -> Answer {
    let start = Instant::now();
    let unsaid = || Failure::own("the server reports no version: is it a Kubernetes API server?");
    let body = match session::get_small(client, "/version").await {
        // What it does not have is not the gateway.
        Err(failure) if failure.kind == Kind::Plain(404) => return Err(unsaid()),
        answer => answer?,
    };
    let version: Version = serde_json::from_slice(&body).map_err(|_| unsaid())?;
    Ok((cut(&version.git_version, LONGEST_VERSION), start.elapsed()))
}

/// The agents of a member, as it sees them itself: a request through one of them needs no other
/// source. `None`: a join put none there, or it is unknown.
pub async fn agents(client: &Client, registered: Option<&Registered>) -> Option<Agents> {
    let namespace = registered?.agents_in.as_deref()?;
    let deployments = Api::<Deployment>::namespaced(bounded(client.clone(), LARGEST_OBJECT), namespace);
    let deployment = deployments.get_opt(agent::RELEASE).await.ok()??;
    let wanted = deployment.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    Some(Agents { linked: deployment.status.and_then(|status| status.ready_replicas).unwrap_or(0), wanted })
}

/// What the clusters' Secrets say beside the credentials, which go no further.
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

/// What a cluster's Secret says beside the credential.
pub fn said(secret: Secret) -> Registered {
    let agents_in =
        registration::agent_account(&secret).and(registration::account(&secret)).map(|account| account.namespace);
    let rotates = registration::account(&secret).is_some();
    let expiry = expiry::registered(&secret.data.unwrap_or_default());
    let alias = secret.metadata.annotations.unwrap_or_default().remove(ALIAS_ANNOTATION);
    let alias = alias.map(|alias| cut(&alias, LONGEST_ALIAS));
    let labels = secret.metadata.labels.unwrap_or_default();
    let labels = labels.into_iter().filter(|(key, _)| !key.starts_with(api::GROUP)).collect();
    Registered { expiry, alias, labels, agents_in, rotates }
}
