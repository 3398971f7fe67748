//! Serves a read of all members at once, in Karmada's dialect (`clusters/*/proxy`).
//!
//! Each member is asked as by a request for it alone: the caller is reviewed for that cluster, acts
//! there as itself, and takes one of the cluster's permits. Clusters that the caller may not reach
//! are left out silently. Those that did not answer are named in a `Warning`.

mod absence;
mod ask;
mod bytes_left;
mod merging;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::accept::{self, Representation, Shape};
use api::access::Attributes;
use api::cluster_name::ClusterName;
use api::karmada::CLUSTERS;
use api::karmada_cluster::merge::Asked;
use api::route::EveryRoute;
use api::status::{Details, Reason, Status};
use auth::Permission;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tokio::time::Instant;

use self::ask::{Answered, Asking, Missing, Outcome};
use self::bytes_left::BytesLeft;
use crate::body::ResponseBody;
use crate::connection::Connection;
use crate::error::{Error, EveryFailure, Side};
use crate::headers;
use crate::holding::Account;
use crate::request_body::RequestBody;
use crate::resources::answer;

/// Members asked concurrently.
const AT_ONCE: usize = 32;
/// A member without a complete response by then is missing.
const WITHIN: Duration = Duration::from_secs(10);
/// After this, the gateway waits for no more members. Those not asked yet are missing.
const ALL_WITHIN: Duration = Duration::from_secs(50);
/// Reviews may take this much longer. After that the request fails.
const LAST: Duration = Duration::from_secs(10);
/// Most clusters named in warnings; for the rest, their number.
const MOST_NAMED: usize = 32;
/// Longest reason kept for one cluster, and longest warning, in bytes of text.
const LONGEST_WARNED: usize = 1024;

/// The results of all members.
#[derive(Default)]
struct Gathered {
    /// Ordered by name.
    found: Vec<(ClusterName, Answered)>,
    missing: Vec<(ClusterName, Missing)>,
    /// At least one member answered that it has no such object.
    is_absent: bool,
}

/// Responds to `route` with the objects of all members.
pub async fn serve(
    connection: &Arc<Connection>,
    route: &EveryRoute<'_>,
    permission: &Permission,
    request: &Request<RequestBody>,
    account: &Account,
) -> Result<Response<ResponseBody>, Error> {
    let shape = if route.is_list { Shape::List } else { Shape::Object };
    let form = accept::representation(request.headers(), shape).map_err(|_| Error::NotAcceptable)?;
    let head = ask::head(route, request, form)?;
    let until = Instant::now() + ALL_WITHIN;
    let permit = connection.gateway().limits.every.enter(permission.user())?;
    let snapshot = connection.gateway().clusters.snapshot();
    if !snapshot.is_listed() {
        return Err(Error::ClustersUnknown);
    }
    let mut names: Vec<ClusterName> = snapshot.ready().iter().map(|cluster| cluster.name().clone()).collect();
    names.extend(snapshot.unconvertible().cloned());
    drop(snapshot);
    let room = BytesLeft::new(names.len(), account, permit);
    let heads = head.counted(names.len().min(AT_ONCE), permission.user(), account);
    let asking = Asking {
        connection,
        route,
        permission,
        account,
        room: &room,
        head,
        until,
        is_given_up: AtomicBool::new(false),
    };
    let asked = iter(names).map(|name| async { (asking.one(&name).await, name) }).buffer_unordered(AT_ONCE);
    let mut gathered = Gathered::default();
    let mut asked = Box::pin(asked);
    while let Some((outcome, name)) = asked.next().await {
        match outcome {
            Outcome::Found(answer) => gathered.found.push((name, answer)),
            Outcome::Missing(why) => gathered.misses(name, why),
            Outcome::Absent => gathered.is_absent = true,
            Outcome::Nothing => {}
            Outcome::Unreviewed(error) => {
                asking.is_given_up.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
    drop(asked);
    drop((asking, heads));
    gathered.found.sort_by(|(one, _), (other, _)| one.cmp(other));
    gathered.answer(asked_for(route, form), room).await
}

/// The requested list; `None` for one object.
fn asked_for(route: &EveryRoute<'_>, form: Representation) -> Option<Asked> {
    if !route.is_list {
        return None;
    }
    let of_meta =
        |kind, version: accept::MetaVersion| Asked { kind: Some(kind), api_version: version.api_version().into() };
    Some(match (form, route.asks.attributes()) {
        (Representation::Table(version), _) => of_meta("Table", version),
        (Representation::Metadata(version), _) => of_meta("PartialObjectMetadataList", version),
        (Representation::Json, Attributes::Resource(asked)) if !asked.group.is_empty() => {
            Asked { kind: None, api_version: format!("{}/{}", asked.group, asked.version) }
        }
        (Representation::Json, Attributes::Resource(asked)) => {
            Asked { kind: None, api_version: asked.version.into_owned() }
        }
        (Representation::Json, _) => Asked { kind: None, api_version: String::new() },
    })
}

// === impl Gathered ===

impl Gathered {
    /// The member chooses the text, and there may be thousands of members.
    fn misses(&mut self, name: ClusterName, mut it: Missing) {
        it.why.truncate(it.why.floor_char_boundary(LONGEST_WARNED));
        it.why.shrink_to_fit();
        self.missing.push((name, it));
    }

    /// `room`: held until the response has the body.
    async fn answer(mut self, asked: Option<Asked>, room: BytesLeft) -> Result<Response<ResponseBody>, Error> {
        let (body, content_type, _room) = match asked {
            Some(asked) => self.merged(asked, room).await?,
            None => self.only(room).await?,
        };
        let mut response = answer(StatusCode::OK, content_type, body);
        self.warn(response.headers_mut());
        Ok(response)
    }

    async fn merged(&mut self, asked: Asked, room: BytesLeft) -> Result<(Bytes, HeaderValue, BytesLeft), Error> {
        let (lists, room) = merging::merged(std::mem::take(&mut self.found), asked, room).await;
        for (cluster, why) in lists.refused {
            self.misses(cluster, Missing::at(Side::Member, why.to_string()));
        }
        match lists.document {
            Some(document) => Ok((document, json(), room)),
            None if self.missing.is_empty() => Err(Error::NotFound),
            None => Err(self.nobody()),
        }
    }

    /// The response of the only member that has the object. Clients forget an object that gets 404,
    /// so each member must have answered for that.
    async fn only(&mut self, room: BytesLeft) -> Result<(Bytes, HeaderValue, BytesLeft), Error> {
        match self.found.len() {
            0 if self.missing.is_empty() => Err(Error::of_caller(Status::new(
                StatusCode::NOT_FOUND,
                Reason::NotFound,
                "no cluster that you may reach has this object",
            ))),
            0 => Err(self.nobody()),
            1 => {
                let Some((cluster, Answered { body, content_type })) = self.found.pop() else {
                    return Ok((Bytes::new(), json(), room));
                };
                // A body that is no object, such as a log, is passed on unchanged.
                if !content_type.as_bytes().starts_with(b"application/json") {
                    return Ok((body, content_type, room));
                }
                let (body, room) = merging::only(cluster, body, room).await;
                Ok((body, content_type, room))
            }
            _ => {
                let names: Vec<_> = self.found.iter().map(|(name, _)| name.as_str()).collect();
                let message = format!("conflict resource, exist in more than one cluster: {}", names.join(","));
                let details =
                    Details { kind: CLUSTERS.into(), group: api::karmada::GROUP.into(), ..Details::default() };
                let status = Status::new(StatusCode::CONFLICT, Reason::Conflict, message).with_details(details);
                Err(Error::of_caller(status))
            }
        }
    }

    /// The error if nothing was found and members are missing.
    fn nobody(&self) -> Error {
        match self.side() {
            Side::Caller => self.refused(),
            side => EveryFailure::NoneServed { side, text: self.unserved() }.into(),
        }
    }

    /// The side where the missing members failed: the caller's only if it is that of all. Members
    /// if there are several others.
    fn side(&self) -> Side {
        let mut others = self.missing.iter().map(|(_, it)| it.side).filter(|side| *side != Side::Caller);
        match others.next() {
            None => Side::Caller,
            Some(side) if others.all(|other| other == side) => side,
            Some(_) => Side::Member,
        }
    }

    /// The error if all missing members refused the caller's request.
    fn refused(&self) -> Error {
        let (code, reason) = if self.missing.iter().all(|(_, it)| it.is_forbidden) {
            (StatusCode::FORBIDDEN, Reason::Forbidden)
        } else {
            (StatusCode::BAD_REQUEST, Reason::BadRequest)
        };
        Error::of_caller(Status::new(code, reason, self.unserved()))
    }

    /// The text of an error that names the missing clusters.
    fn unserved(&self) -> String {
        let begin = if self.is_absent {
            "not found in the clusters that served this request"
        } else {
            "no cluster served this request"
        };
        let named = self.missing.iter().take(MOST_NAMED).map(|(name, it)| format!("{name} ({})", it.why));
        let named: Vec<_> = named.collect();
        let more = self.missing.len().saturating_sub(MOST_NAMED);
        let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("{begin}; missing: {}{rest}", named.join(", "))
    }

    fn warn(&mut self, headers: &mut HeaderMap) {
        self.missing.sort_by(|(one, _), (other, _)| one.cmp(other));
        let more = self.missing.len().saturating_sub(MOST_NAMED);
        let missing = self.missing.iter().take(MOST_NAMED);
        let named = missing.map(|(name, it)| format!("cluster {name} is missing: {}", it.why));
        let rest = (more > 0).then(|| format!("{more} more clusters are missing"));
        for text in named.chain(rest) {
            headers::warn(headers, &text, LONGEST_WARNED);
        }
    }
}

fn json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}
