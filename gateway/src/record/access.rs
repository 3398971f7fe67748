//! The access log: one line per request at level DEBUG, when it has ended, and one line at level
//! WARN per request that failed without its caller's fault, except in floods.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use api::access::{Attributes, ResourceAttributes};
use api::cluster_name::ClusterName;
use api::route::{Parsed, Route};
use api::traffic::RecentFailure;
use auth::{Identity, User};
use tracing::Level;

use crate::error::Side;
use crate::request::Head;

/// Most characters of a resource, a path or a user's name in a line: callers choose them, and a
/// path may have 64 KiB.
const LONGEST: usize = 256;

/// The fields that are known before a request has ended.
pub struct AccessLine {
    user: Option<Arc<User>>,
    cluster: Option<ClusterName>,
    verb: Cow<'static, str>,
    /// As for `kubectl auth can-i`: `pods/log`, `deployments.apps`; for other requests the path.
    resource: String,
}

/// A failure that the caller did not cause.
pub struct Failed<'a> {
    /// `None` if it failed before the user was known.
    pub user: Option<&'a User>,
    pub side: Side,
    pub code: u16,
    pub text: &'a str,
    /// Lines suppressed before this one, for the same cluster and side.
    pub suppressed: u64,
}

// === impl AccessLine ===

impl AccessLine {
    /// `None` if no log takes it.
    pub fn begin(head: &Head<'_>) -> Option<Box<Self>> {
        tracing::enabled!(Level::DEBUG).then(|| Box::new(Self::of(&head.parsed)))
    }

    pub fn of(parsed: &Parsed<'_>) -> Self {
        let (attributes, cluster) = match &parsed.route {
            Route::Proxy(route) => (Cow::Owned(route.asks.attributes()), Some(route.cluster.clone())),
            _ => (Cow::Borrowed(&parsed.attributes), None),
        };
        let (verb, resource) = match &*attributes {
            Attributes::Resource(resource) => (Cow::Borrowed(resource.verb.as_str()), written(resource)),
            Attributes::NonResource { path, verb } => (verb.clone(), path.to_string()),
        };
        Self { user: None, cluster, verb, resource: short(&resource).to_owned() }
    }

    /// The cluster that the request names.
    pub fn cluster(&self) -> Option<&ClusterName> {
        self.cluster.as_ref()
    }

    /// The user that acts: under impersonation the impersonated one, as in the hub's own log.
    pub fn identified(&mut self, identity: &Identity) {
        self.user = Some(Arc::clone(&identity.user));
    }

    pub fn write(&self, code: u16, side: Option<Side>, took: Duration) {
        tracing::debug!(
            user = self.user.as_ref().map_or("", |user| short(&user.name)),
            cluster = self.cluster.as_ref().map_or("", ClusterName::as_str),
            verb = short(&self.verb),
            resource = self.resource,
            code,
            side = side.map_or("", Side::as_str),
            seconds = took.as_secs_f64(),
            "request done"
        );
    }

    pub fn write_failed(&self, failed: &Failed<'_>, took: Duration) {
        tracing::warn!(
            user = failed.user.map_or("", |user| short(&user.name)),
            cluster = self.cluster.as_ref().map_or("", ClusterName::as_str),
            verb = short(&self.verb),
            resource = self.resource,
            code = failed.code,
            side = failed.side.as_str(),
            seconds = took.as_secs_f64(),
            error = failed.text,
            suppressed = failed.suppressed,
            "request failed"
        );
    }

    /// The same fields for readers of the cluster's recent failures.
    pub fn recent(self, failed: &Failed<'_>, took: Duration) -> RecentFailure {
        RecentFailure {
            time: 0,
            user: failed.user.map_or("", |user| short(&user.name)).to_owned(),
            verb: short(&self.verb).to_owned(),
            resource: self.resource,
            code: failed.code,
            side: failed.side.as_str().to_owned(),
            took_micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            text: failed.text.to_owned(),
            suppressed: failed.suppressed,
        }
    }
}

fn written(resource: &ResourceAttributes) -> String {
    let ResourceAttributes { resource, group, subresource, .. } = resource;
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{resource}{dot}{group}{slash}{subresource}")
}

fn short(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callers_choose_is_cut_between_characters() {
        assert_eq!(short("pods"), "pods");
        assert_eq!(short(&"é".repeat(LONGEST + 1)), "é".repeat(LONGEST));
    }
}
