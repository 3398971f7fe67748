//! Reads the list of clusters page by page, and the part of it that a selector matches.

use std::collections::HashSet;
use std::time::Duration;

use api::{GROUP, VERSION};
use http::Request;
use kube::Client;
use kube::client::Body;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::time::timeout;

use crate::answer::answer;
use crate::cluster::{Cluster, Item};
use crate::failure::Failure;

/// Clusters per page, as in client-go.
const PAGE: usize = 500;
/// Most pages of one list: half a million clusters, more than a hub holds Secrets.
pub const MOST: usize = 1000;
/// Longest page, in bytes: 500 clusters with a CA bundle of 64 KiB each.
const LARGEST: usize = 32 << 20;
/// Default time for one page. The hub itself gives up after 60 s.
pub const WITHIN: Duration = Duration::from_mins(1);

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    r#continue: String,
    resource_version: String,
}

/// The credential type of a `VirtualCluster` made from a `ManagedCluster`.
const MANAGED_CLUSTER: &str = "ManagedCluster";

/// The clusters of all pages.
struct Listed {
    clusters: Vec<Cluster>,
    /// Whether the gateway applied the selector. The Go cluster-gateway does not, and its lists
    /// have no version.
    is_selected: bool,
}

#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    items: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    metadata: Name,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    credential_type: String,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// All clusters that match `selector`. A list that expires between two pages (410) is read once
/// more: on a hub that is compacted every five minutes, a second expiry means that the list is too
/// slow.
pub async fn read(hub: &Client, selector: &str, within: Duration) -> Result<Vec<Cluster>, Failure> {
    let listed = match all(hub, selector, within).await {
        Err(failure) if failure.is_expired() => all(hub, selector, within).await,
        outcome => outcome,
    };
    let Listed { mut clusters, is_selected } = listed?;
    if !selector.is_empty() && !is_selected {
        if let Some(key) = keys(selector).find(|key| key.starts_with(GROUP)) {
            return Err(Failure::unselectable(key));
        }
        let selected = timeout(within, virtual_clusters(hub, selector)).await;
        let selected = selected.unwrap_or_else(|_| Err(Failure::late(within)))?;
        clusters.retain(|cluster| selected.contains(cluster.name.as_str()));
    }
    Ok(clusters)
}

/// The names of the `virtualclusters` that match `selector`. This is the only list that the Go
/// cluster-gateway narrows (`virtualcluster_client.go`). It removes the labels of its own group
/// before it selects: no selector can ask for them, and a selector that excludes them matches all.
///
/// A matching `ManagedCluster` counts for nothing: it would stand for a Secret of the same name
/// that does not match, and a user who may label the `ManagedCluster` would choose where commands
/// for the Secret's cluster go.
async fn virtual_clusters(hub: &Client, selector: &str) -> Result<HashSet<String>, Failure> {
    let selector = utf8_percent_encode(selector, NON_ALPHANUMERIC);
    let target = format!("/apis/{GROUP}/{VERSION}/virtualclusters?labelSelector={selector}");
    let request = Request::get(target).header("accept", "application/json").body(Body::empty());
    let body = answer(&hub.clone().into(), request.map_err(kube::Error::HttpError)?, LARGEST).await?;
    let names: Names =
        serde_json::from_slice(&body).map_err(|_| Failure::own("the hub's list of virtual clusters cannot be read"))?;
    let registered = names.items.into_iter().filter(|item| item.spec.credential_type != MANAGED_CLUSTER);
    Ok(registered.map(|item| item.metadata.name).collect())
}

/// The requirements of `selector`, each from its key on. Commas in parentheses separate values.
fn keys(selector: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    let is_between = move |character: char| {
        is_inside = character == '(' || is_inside && character != ')';
        character == ',' && !is_inside
    };
    selector.split(is_between).map(|text| text.trim_start_matches(|it: char| it == '!' || it.is_whitespace()))
}

async fn all(hub: &Client, selector: &str, within: Duration) -> Result<Listed, Failure> {
    let (mut clusters, mut next) = (Vec::new(), String::new());
    for _ in 0..MOST {
        let page = timeout(within, page(hub, selector, &next)).await.unwrap_or_else(|_| Err(Failure::late(within)))?;
        for item in page.items {
            clusters.push(item.cluster().ok_or_else(|| Failure::own("a cluster in the list has no valid name"))?);
        }
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(Listed { clusters, is_selected: !page.metadata.resource_version.is_empty() });
        }
    }
    Err(Failure::own(format!("the list of clusters does not end after {MOST} pages")))
}

async fn page(hub: &Client, selector: &str, next: &str) -> Result<Page, Failure> {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let mut target = format!("/apis/{GROUP}/{VERSION}/clustergateways?limit={PAGE}");
    if !selector.is_empty() {
        target = format!("{target}&labelSelector={}", encoded(selector));
    }
    if !next.is_empty() {
        target = format!("{target}&continue={}", encoded(next));
    }
    let request = Request::get(target).header("accept", "application/json").body(Body::empty());
    let body = answer(&hub.clone().into(), request.map_err(kube::Error::HttpError)?, LARGEST).await?;
    serde_json::from_slice(&body).map_err(|_| Failure::own("the hub's list of clusters cannot be read"))
}
