//! Single parts of the request path for benches. Not a stable interface: it changes with the code.

use api::accept::StatusForm;
use api::cluster_name::ClusterName;
use api::secret::Endpoint;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::error::Cause;
use crate::{headers, proxy};

/// A client's head as the member receives it: URI, headers, and `credential`. `None` if it may not
/// pass.
pub fn to_member(
    endpoint: &Endpoint,
    uri: &Uri,
    remainder: usize,
    head: &mut HeaderMap,
    client: &HeaderValue,
    credential: &HeaderValue,
) -> Option<Uri> {
    let target = proxy::rewrite(endpoint, uri, remainder).ok()?;
    headers::to_member(head, client).ok()?;
    head.insert(AUTHORIZATION, credential.clone());
    Some(target.into())
}

/// A member's headers as the client receives them.
pub fn to_client(head: &mut HeaderMap) {
    headers::to_client(head);
}

/// The response to a request for an unregistered cluster, and the length of its body.
pub fn no_such_cluster(cluster: &ClusterName) -> (StatusCode, Option<usize>) {
    let mut response = Cause::Absent.at(cluster).into_response_as(StatusForm::Json);
    (response.status(), response.body_mut().without_own_bytes())
}
