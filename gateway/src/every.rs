//! A read of all members at once, in Karmada's spelling (`clusters/*/proxy`).
//!
//! Each member is asked as by a request of its own: the caller is reviewed for that cluster, acts
//! there as itself, and takes a place among the cluster's requests. Clusters that the caller may
//! not reach are left out without a word; those that did not answer are named in a `Warning`.

mod ask;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::accept::{self, Shape};
use api::cluster_name::ClusterName;
use api::karmada::CLUSTERS;
use api::karmada_cluster::merge::Merged;
use api::route::EveryRoute;
use api::status::{Details, Reason, Status};
use auth::Permit;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WARNING, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use self::ask::{Answered, Asking, Outcome};
use crate::body::ResponseBody;
use crate::connection::Connection;
use crate::error::Error;
use crate::holding::Account;
use crate::request_body::RequestBody;

/// Members asked at once.
const AT_ONCE: usize = 32;
/// A member that has not answered whole by then is missing.
const WITHIN: Duration = Duration::from_secs(10);
/// What all answers may have together, in bytes.
const LARGEST: usize = 64 << 20;
/// Clusters named in warnings; of others, the number.
const MOST_NAMED: usize = 32;

/// What answers may still have, in bytes; what they have is held for the request.
struct Room {
    left: AtomicUsize,
    account: Account,
}

/// An answer, and its part of the merged one.
const COPIES: usize = 2;

/// What came of all members.
#[derive(Default)]
struct Gathered {
    /// By name.
    found: Vec<(ClusterName, Answered)>,
    /// With why.
    missing: Vec<(ClusterName, String)>,
}

/// Answers `route` with what all members have.
pub async fn serve(
    connection: &Arc<Connection>,
    route: &EveryRoute<'_>,
    permit: &Permit,
    request: &Request<RequestBody>,
    account: &Account,
) -> Result<Response<ResponseBody>, Error> {
    let shape = if route.is_list { Shape::List } else { Shape::Object };
    let form = accept::representation(request.headers(), shape).map_err(|_| Error::NotAcceptable)?;
    let snapshot = connection.gateway().clusters.snapshot();
    if !snapshot.is_listed() {
        return Err(Error::ClustersUnknown);
    }
    let mut names: Vec<ClusterName> = snapshot.ready().iter().map(|cluster| cluster.name().clone()).collect();
    names.extend(snapshot.unconvertible().cloned());
    drop(snapshot);
    let room = Room { left: AtomicUsize::new(LARGEST), account: account.clone() };
    let asking = Asking { connection, route, permit, account, room: &room, head: ask::head(route, request, form)? };
    let asked = iter(names).map(|name| async { (asking.one(&name).await, name) }).buffer_unordered(AT_ONCE);
    let mut gathered = Gathered::default();
    let mut asked = Box::pin(asked);
    while let Some((outcome, name)) = asked.next().await {
        match outcome {
            Outcome::Found(answer) => gathered.found.push((name, answer)),
            Outcome::Missing(why) => gathered.missing.push((name, why)),
            Outcome::Nothing => {}
            Outcome::TooLarge => return Err(too_large()),
            Outcome::Unreviewed(error) => return Err(error),
        }
    }
    drop(asked);
    gathered.found.sort_by(|(one, _), (other, _)| one.cmp(other));
    gathered.answer(route.is_list)
}

fn too_large() -> Error {
    Error::Status(Box::new(Status::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        Reason::RequestEntityTooLarge,
        format!("the answers of all clusters are larger than {} MiB: ask for less, with a selector", LARGEST >> 20),
    )))
}

// === impl Gathered ===

impl Gathered {
    fn answer(mut self, is_list: bool) -> Result<Response<ResponseBody>, Error> {
        let (body, content_type) = if is_list { (self.merged()?, json()) } else { self.only()? };
        let mut response = Response::new(ResponseBody::full(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        self.warn(headers);
        Ok(response)
    }

    fn merged(&mut self) -> Result<Bytes, Error> {
        let mut merged = Merged::default();
        for (cluster, answer) in std::mem::take(&mut self.found) {
            if let Err(why) = merged.add(cluster.as_str(), &answer.body) {
                self.missing.push((cluster, why.to_string()));
            }
        }
        match merged.document() {
            Some(document) => Ok(document.into()),
            None if self.missing.is_empty() => Err(Error::NotFound),
            None => Err(self.nobody()),
        }
    }

    /// The one member's answer.
    fn only(&mut self) -> Result<(Bytes, HeaderValue), Error> {
        match self.found.len() {
            0 => Err(Error::Status(Box::new(Status::new(
                StatusCode::NOT_FOUND,
                Reason::NotFound,
                format!("no cluster that could be asked has this object{}", self.unasked()),
            )))),
            1 => Ok(self.found.pop().map_or_else(|| (Bytes::new(), json()), |(_, it)| (it.body, it.content_type))),
            _ => {
                let names: Vec<_> = self.found.iter().map(|(name, _)| name.as_str()).collect();
                let message = format!("conflict resource, exist in more than one cluster: {}", names.join(","));
                let details =
                    Details { kind: CLUSTERS.into(), group: api::karmada::GROUP.into(), ..Details::default() };
                let status = Status::new(StatusCode::CONFLICT, Reason::Conflict, message).with_details(details);
                Err(Error::Status(Box::new(status)))
            }
        }
    }

    fn nobody(&self) -> Error {
        let message = format!("no cluster answered{}", self.unasked());
        Error::Status(Box::new(Status::new(StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, message)))
    }

    /// The missing ones, for an error.
    fn unasked(&self) -> String {
        let named = self.missing.iter().take(MOST_NAMED).map(|(name, why)| format!("{name} ({why})"));
        let named: Vec<_> = named.collect();
        if named.is_empty() { String::new() } else { format!("; missing: {}", named.join(", ")) }
    }

    fn warn(&mut self, headers: &mut HeaderMap) {
        self.missing.sort_by(|(one, _), (other, _)| one.cmp(other));
        let more = self.missing.len().saturating_sub(MOST_NAMED);
        let named = self.missing.iter().take(MOST_NAMED).map(|(name, why)| format!("cluster {name} is missing: {why}"));
        let rest = (more > 0).then(|| format!("{more} more clusters are missing"));
        for text in named.chain(rest) {
            if let Ok(value) = HeaderValue::try_from(format!("299 - \"{}\"", text.escape_default())) {
                headers.append(WARNING, value);
            }
        }
    }
}

fn json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

// === impl Room ===

impl Room {
    /// Takes `bytes`, if there is as much room.
    fn take(&self, bytes: usize) -> bool {
        let fits = |left: usize| left.checked_sub(bytes);
        let is_taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if is_taken {
            self.account.take(COPIES * bytes);
        }
        is_taken
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.account.give(COPIES * (LARGEST - self.left.load(Ordering::Relaxed)));
    }
}
