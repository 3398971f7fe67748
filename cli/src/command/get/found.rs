//! What clusters have of the wanted resource.

use fleet::{Failure, Kind};
use kube::Client;
use serde_json::Value;

use super::typed;
use crate::resource::{self, Groups, Resource, ResourceArgument};
use crate::session;
use crate::tables::{Page, Part};

/// Reason of the failure of a cluster that has no such resource.
pub(super) const UNHEARD_OF: &str = "NoSuchResource";

/// The pages that one cluster returned, as one.
pub(super) enum CollectedPages {
    Rows(Part),
    Objects(Vec<Value>),
}

// === impl CollectedPages ===

impl CollectedPages {
    /// Adds a page. Returns the token for the next page.
    pub(super) fn add(&mut self, body: &[u8]) -> Result<String, Failure> {
        let unreadable = |_| Failure::own("the answer cannot be read");
        match self {
            Self::Rows(part) => {
                let page: Page = serde_json::from_slice(body).map_err(unreadable)?;
                let next = page.next().to_owned();
                part.add(page);
                Ok(next)
            }
            Self::Objects(all) => {
                let mut page: Value = serde_json::from_slice(body).map_err(unreadable)?;
                let next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
                match page.get_mut("items").map(Value::take) {
                    Some(Value::Array(items)) => all.extend(items.into_iter().map(|item| typed(item, &page))),
                    _ => all.push(page),
                }
                Ok(next)
            }
        }
    }
}

pub(super) async fn discover(client: &Client, wanted: &ResourceArgument) -> Result<Option<Resource>, Failure> {
    let document = |path| async move {
        let body = session::get(client, path, resource::ACCEPT).await?;
        let groups: Option<Groups> = serde_json::from_slice(&body).ok();
        groups.filter(Groups::is_complete).ok_or_else(|| {
            Failure::own("its API server is too old to list all its resources at once (it needs Kubernetes 1.27)")
        })
    };
    let (core, others) = tokio::try_join!(document("/api"), document("/apis"))?;
    Ok(wanted.find(&[core, others]))
}

pub(super) fn is_unheard_of(failure: &Failure) -> bool {
    failure.kind == Kind::Own && failure.reason == UNHEARD_OF
}

/// Whether the path is unknown to the member: kube-apiserver's plain 404, or a Status. The
/// gateway's own 404, for a cluster that is not registered, does not count.
pub(super) fn is_unknown(failure: &Failure) -> bool {
    let unregistered = failure.side == Some(api::side::Side::Caller);
    matches!(failure.kind, Kind::Answered(404) | Kind::Plain(404)) && !unregistered
}
