//! Whether a cluster answers through the gateway, and as which user it sees the gateway.

use std::time::Duration;

use api::cluster_name::ClusterName;
use api::side::Side;
use api::{GROUP, VERSION};
use fleet::{Failure, Kind};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::session::{self, LOOK_AGAIN, Session};
use crate::text_table::cut;
use crate::trouble::{Result, Trouble};

/// Longest user name that is kept, in characters. That of a ServiceAccount has at most 306:
/// `system:serviceaccount:`, a namespace of 63, a colon, and a name of 220 (`account`).
const LONGEST_USER: usize = 320;

/// The user as which the member authenticates the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayUser {
    pub user: String,
    /// Time until the member answered.
    pub took: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewStatus {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: String,
}

/// Asks the member, through the gateway, which user it sees.
pub async fn whoami(session: &Session, cluster: &ClusterName) -> std::result::Result<GatewayUser, Failure> {
    let client = session.fleet.client(cluster);
    let document = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let start = Instant::now();
    let asked = session::post(&client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &document);
    let unsaid =
        || Failure::own("the member does not report the caller: is it a Kubernetes API server of 1.28 or later?");
    let body = match session.bounded(asked).await {
        // Here, a 404 does not mean that the hub has no gateway.
        Err(failure) if failure.kind == Kind::Plain(404) => return Err(unsaid()),
        answer => answer?,
    };
    let review: Review = serde_json::from_slice(&body).map_err(|_| unsaid())?;
    Ok(GatewayUser { user: cut(&review.status.user_info.username, LONGEST_USER), took: start.elapsed() })
}

/// Whether the hub refused to forward [`whoami`]: it is a POST, so read rights do not suffice.
pub fn is_refused_by_hub(failure: &Failure) -> bool {
    failure.side == Some(Side::Caller) && failure.kind == Kind::Answered(403)
}

/// Waits, for at most `span`, until the gateway has read the cluster's Secret at `version`, a
/// resourceVersion, or later. Before that, its answers are about the old Secret. Does not wait if
/// the gateway does not report what it has read, or not to this user.
pub async fn until_read(session: &Session, cluster: &ClusterName, version: &str, span: Duration) -> Result<()> {
    let end = Instant::now() + span;
    let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{cluster}");
    while let Err(failure) = read(session, &path, version).await {
        if failure.kind == Kind::Answered(403) {
            return Ok(());
        }
        if Instant::now() + LOOK_AGAIN > end {
            return Err(failure.into());
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn read(session: &Session, path: &str, version: &str) -> std::result::Result<(), Failure> {
    let body = session.bounded(session::get(session.hub(), path, session::JSON)).await?;
    let object: Object = serde_json::from_slice(&body).unwrap_or_default();
    if is_since(&object.metadata.resource_version, version) {
        return Ok(());
    }
    Err(Failure::own("the gateway has not read the cluster's new Secret"))
}

/// Whether `known` is `version` or a later one. They can be compared as numbers
/// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>).
fn is_since(known: &str, version: &str) -> bool {
    let number = |text: &str| text.parse::<u128>().ok();
    known.is_empty()
        || known == version
        || number(known).zip(number(version)).is_some_and(|(known, version)| known >= version)
}

/// Asks, for at most `span`, until the member sees the gateway as `user` (`None`: as any). If the
/// person lacks a right, the wait ends at once: that does not pass.
pub async fn until_answered(
    session: &Session,
    cluster: &ClusterName,
    user: Option<&str>,
    span: Duration,
) -> Result<GatewayUser> {
    let end = Instant::now() + span;
    loop {
        let outcome = whoami(session, cluster).await;
        let last = match outcome {
            Ok(seen) if user.is_none_or(|user| user == seen.user) => return Ok(seen),
            Ok(seen) => Trouble::failed(
                format!("the member still sees the gateway as {}", seen.user),
                "see the gateway's log: it has not read the cluster's new Secret",
            ),
            Err(failure) if failure.kind == Kind::Answered(403) => return Err(failure.into()),
            Err(failure) => failure.into(),
        };
        if Instant::now() + LOOK_AGAIN > end {
            return Err(last);
        }
        sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_new_enough_or_not() {
        assert!(is_since("100", "99") && is_since("99", "99") && is_since("a", "a"));
        assert!(!is_since("99", "100") && !is_since("a", "b"), "an old one");
        assert!(is_since("", "100"), "nobody says");
    }
}
