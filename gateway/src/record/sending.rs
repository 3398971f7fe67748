//! What is kept of a request while its response is sent, for the log line if the response is cut
//! off.

use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::route::{self, RawRequest, Served};
use auth::User;
use http::Method;

use super::access::AccessLine;
use crate::holding::Account;
use crate::metrics::ClusterMetrics;
use crate::needs::RequestNeeds;
use crate::request::RequestLine;

/// Kept from the head of a response to its end. The request's path is a copy, because its own
/// buffer may be much larger; the request's account counts the path anyway.
pub struct Sending {
    pub gateway: Arc<RequestNeeds>,
    account: Account,
    method: Method,
    target: Box<str>,
    served: Served,
}

// === impl Sending ===

impl Sending {
    /// `line` is the request's own, and `served` is what its port serves.
    pub fn of(gateway: &Arc<RequestNeeds>, line: &RequestLine, served: Served, account: &Account) -> Self {
        let (method, target) = (line.method().clone(), line.target().into());
        Self { gateway: Arc::clone(gateway), account: account.clone(), method, target, served }
    }

    /// Whether the request had to give way for the bytes that it held.
    pub fn gave_way(&self) -> bool {
        self.account.is_ended()
    }

    /// Whether the cluster that it names is still registered: the gateway itself ends the streams
    /// of a deleted one, whose name may belong to another by now. `metrics` are the request's.
    pub fn is_current(&self, name: &ClusterName, metrics: &Arc<ClusterMetrics>) -> bool {
        self.gateway.clusters.is_current(name, metrics)
    }

    pub fn user(&self) -> Option<&User> {
        self.account.holder().user()
    }

    pub fn line(&self) -> AccessLine {
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.target, None),
        };
        let asked = RawRequest { method: &self.method, path, query, upgrade: None, served: self.served };
        AccessLine::of(&route::parse(asked))
    }
}
