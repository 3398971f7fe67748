//! One member's part of a request for all members.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::accept::{MetaVersion, Representation};
use api::access::{Attributes, ResourceAttributes, Verb};
use api::cluster_name::ClusterName;
use api::karmada::{CLUSTERS, GROUP, VERSION};
use api::route::{Dialect, EveryRoute, ProxyRoute};
use api::side::Fault;
use auth::{AuthorizationError, Permission, User};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use super::absence;
use super::bytes_left::BytesLeft;
use super::{ALL_WITHIN, LAST, WITHIN, json};
use crate::body::ResponseBody;
use crate::clusters::Cluster;
use crate::connection::Connection;
use crate::error::{Cause, Error, EveryFailure, Side};
use crate::holding::{self, Account, Tally};
use crate::limits::Kind;
use crate::metrics::InFlight;
use crate::proxy::{Call, forward, subpath};
use crate::record::CLIENT_CLOSED_REQUEST;
use crate::request::framing;
use crate::request_body::{BoxedRequest, RequestBody};

/// The head of the request to each member.
pub struct Head {
    uri: Uri,
    headers: HeaderMap,
}

/// The caller, and its request.
pub struct Asking<'a> {
    pub connection: &'a Arc<Connection>,
    pub route: &'a EveryRoute<'a>,
    /// The permission for the cluster `*`.
    pub permission: &'a Permission,
    pub account: &'a Account,
    pub room: &'a BytesLeft,
    pub head: Head,
    /// When the gateway stops waiting for members.
    pub until: Instant,
    /// The gateway gave up the whole request, so members' requests in flight did not end because
    /// the client left.
    pub is_given_up: AtomicBool,
}

/// The result of one member.
pub enum Outcome {
    Found(Answered),
    /// The member has no such object, or no such kind.
    Absent,
    /// The caller may not know of the member, or it is unregistered by now.
    Nothing,
    /// The member gave no usable response, with the reason.
    Missing(Missing),
    /// It is unknown whether the caller may know of the member, so the response must not mention
    /// it.
    Unreviewed(Error),
}

/// Why a member is missing.
pub struct Missing {
    pub why: String,
    /// Where it failed.
    pub side: Side,
    /// The member answered 403.
    pub is_forbidden: bool,
}

/// A member's response with 200.
pub struct Answered {
    pub body: Bytes,
    pub content_type: HeaderValue,
}

/// A request to a member. Counts as the cluster's own once it has ended in any way.
struct Sent<'a> {
    /// None if there is no such cluster, or its Secret cannot be used.
    started: Option<(Arc<Cluster>, InFlight)>,
    /// `None` if it ended before a response, because the client left or the gateway gave up.
    code: Option<StatusCode>,
    is_given_up: &'a AtomicBool,
}

/// Parameters that only make sense for one member: pages and versions.
const OF_ONE: [&str; 5] = ["limit", "continue", "resourceVersion", "resourceVersionMatch", "sendInitialEvents"];

/// The caller's headers that each member gets too: caller, route and trace. Others may belong to a
/// body that is not sent, or to one member's response.
const OF_ALL: [&str; 6] = ["user-agent", "via", "x-forwarded-for", "traceparent", "tracestate", "audit-id"];

/// The request without parameters for a single member. Only JSON can be merged.
pub fn head(route: &EveryRoute<'_>, request: &Request<RequestBody>, form: Representation) -> Result<Head, Error> {
    if !request.body().is_end_stream() || framing::is_chunked(request.headers()) {
        return Err(Error::BadRequest("a read of all clusters has no body"));
    }
    let mut headers = HeaderMap::new();
    for name in OF_ALL {
        for value in request.headers().get_all(name) {
            headers.append(name, value.clone());
        }
    }
    headers.insert(ACCEPT, HeaderValue::from_static(accepted(form, route.is_list)));
    let is_table = matches!(form, Representation::Table(_));
    let uri = if route.is_list { of_all(request.uri(), is_table)? } else { request.uri().clone() };
    Ok(Head { uri, headers })
}

fn accepted(form: Representation, is_list: bool) -> &'static str {
    match (form, is_list) {
        (Representation::Json, _) => "application/json",
        (Representation::Table(MetaVersion::V1), _) => "application/json;as=Table;v=v1;g=meta.k8s.io",
        (Representation::Table(MetaVersion::V1beta1), _) => "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        (Representation::Metadata(MetaVersion::V1), true) => {
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        }
        (Representation::Metadata(MetaVersion::V1beta1), true) => {
            "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io"
        }
        (Representation::Metadata(MetaVersion::V1), false) => {
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        }
        (Representation::Metadata(MetaVersion::V1beta1), false) => {
            "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io"
        }
    }
}

/// `uri` without pages. A table's row needs its object, or it could not name its cluster.
fn of_all(uri: &Uri, is_table: bool) -> Result<Uri, Error> {
    let Some(query) = uri.query() else { return Ok(uri.clone()) };
    if api::query::first(Some(query), "continue").is_some_and(|token| !token.is_empty()) {
        return Err(Error::BadRequest("a list of all clusters has no pages: leave out continue"));
    }
    let is_for_all = |pair: &&str| {
        let named = api::query::pairs(pair).next();
        named.is_none_or(|(name, _)| !OF_ONE.contains(&&*name))
    };
    let include = |pair| {
        let is_none = is_table && api::query::pairs(pair).any(|pair| pair == ("includeObject".into(), "None".into()));
        if is_none { "includeObject=Metadata" } else { pair }
    };
    let kept: Vec<&str> = query.split('&').filter(is_for_all).map(include).collect();
    let target = if kept.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), kept.join("&")) };
    target.parse().map_err(|_| Error::BadRequest("the query cannot be read"))
}

/// When a member that is asked now counts as missing, if the gateway waits for none after `until`.
/// `None`: there is no time left to wait for it.
fn deadline(until: Instant) -> Option<Instant> {
    let now = Instant::now();
    (now < until).then(|| until.min(now + WITHIN))
}

// === impl Head ===

impl Head {
    /// Counts the requests to this many members for `account`, until the tally is dropped. Each
    /// has tables, a chain of addresses, a path and the identity of `user` of its own.
    pub fn counted(&self, members: usize, user: &User, account: &Account) -> Tally {
        let path = self.uri.path_and_query().map_or(0, |path| path.as_str().len());
        let mut tally = account.tally();
        tally.set(members * (path + holding::request_headers(&self.headers) + holding::identity(user)));
        tally
    }
}

// === impl Asking ===

impl Asking<'_> {
    /// Asks one member. Boxed, because there are many at once.
    pub async fn one(&self, name: &ClusterName) -> Outcome {
        let route = ProxyRoute {
            cluster: name.clone(),
            asks: self.route.asks.clone(),
            prefix: self.route.prefix,
            dialect: Dialect::Karmada,
        };
        // A cluster whose review is late must not become a name in a warning.
        let permission = match timeout_at(self.until + LAST, Box::pin(self.reviewed(&route))).await {
            Ok(Ok(Some(permission))) => permission,
            Ok(Ok(None)) => return Outcome::Nothing,
            Ok(Err(error)) => return Outcome::Unreviewed(error),
            Err(_) => return Outcome::Unreviewed(EveryFailure::LateReviews((ALL_WITHIN + LAST).as_secs()).into()),
        };
        let Some(within) = deadline(self.until) else {
            return Outcome::missing(Side::Gateway, "there was no time left to ask it");
        };
        let mut sent = Sent { started: None, code: None, is_given_up: &self.is_given_up };
        match timeout_at(within, Box::pin(self.asked(&route, permission, &mut sent))).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                let side = error.verdict().side;
                let status = error.into_status();
                sent.code = Some(status.code());
                if status.code() == StatusCode::NOT_FOUND {
                    // It was unregistered after the request began.
                    return Outcome::Nothing;
                }
                Outcome::missing(side, status.message())
            }
            Err(_) => {
                sent.code = Some(StatusCode::GATEWAY_TIMEOUT);
                if within == self.until {
                    Outcome::missing(Side::Gateway, "it did not answer in the time that was left")
                } else {
                    Outcome::missing(Side::Member, format!("it did not answer within {} s", WITHIN.as_secs()))
                }
            }
        }
    }

    async fn asked(
        &self,
        route: &ProxyRoute<'_>,
        permission: Permission,
        sent: &mut Sent<'_>,
    ) -> Result<Outcome, Error> {
        let (gateway, name) = (self.connection.gateway(), &route.cluster);
        let cluster = match gateway.cluster(name).await {
            Ok(cluster) => cluster,
            Err(error) => return Err(Error::lookup(name, error)),
        };
        sent.to(&cluster);
        let limits = &gateway.limits;
        let _permits = [
            limits.of_user(permission.user(), Kind::Short)?,
            limits.of_cluster(name, cluster.load(), permission.user(), Kind::Short)?,
        ];
        let acting = gateway.acting(&cluster, permission.user(), route).await;
        let acting = acting.map_err(|reason| Cause::Invalid(reason).at(name))?;
        let asked = (route.prefix, &route.asks);
        let call = Call::new(self.connection, Arc::clone(&cluster), asked, permission, acting, self.account);
        let response = forward::serve(&call, self.request()).await?;
        let code = response.status();
        let outcome = self.read(response).await;
        sent.code = Some(code);
        Ok(outcome)
    }

    /// The caller's permission for this cluster; `None` if it has none.
    async fn reviewed(&self, route: &ProxyRoute<'_>) -> Result<Option<Permission>, Error> {
        let gateway = self.connection.gateway();
        let attributes = Attributes::Resource(ResourceAttributes {
            verb: Verb::Get,
            group: Cow::Borrowed(GROUP),
            version: Cow::Borrowed(VERSION),
            resource: Cow::Borrowed(CLUSTERS),
            subresource: Cow::Borrowed("proxy"),
            namespace: None,
            name: Some(route.cluster.shared()),
            field_selector: None,
            label_selector: None,
        });
        let user = Arc::clone(self.permission.user());
        let permission = match gateway.authorizer.authorize(user, attributes).await {
            Ok(permission) => permission,
            Err(AuthorizationError::Forbidden { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if gateway.settings.authorize_subpath {
            match subpath::authorize(gateway, Arc::clone(permission.user()), route).await {
                Err(Error::Authorization(AuthorizationError::Forbidden { .. })) => return Ok(None),
                reviewed => reviewed?,
            }
        }
        Ok(Some(permission))
    }

    fn request(&self) -> BoxedRequest {
        let mut request = Request::new(RequestBody::empty(Some(self.account.clone())));
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.head.uri.clone();
        *request.headers_mut() = self.head.headers.clone();
        Box::new(request)
    }

    async fn read(&self, response: Response<ResponseBody>) -> Outcome {
        let (head, mut body) = response.into_parts();
        match head.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => {
                if absence::is_from_api_server(&head.headers, body).await {
                    return Outcome::Absent;
                }
                return Outcome::missing(Side::Member, "its 404 is not that of an API server");
            }
            code => return Outcome::Missing(Missing::answered(code)),
        }
        let (mut bytes, mut share) = (BytesMut::new(), self.room.share());
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Outcome::missing(Side::Member, "its answer was cut off") };
            let Ok(data) = frame.into_data() else { continue };
            if !share.take(data.len()) {
                return Outcome::missing(Side::Gateway, "its answer is too large beside the others'");
            }
            bytes.extend_from_slice(&data);
        }
        let content_type = head.headers.get(CONTENT_TYPE).cloned().unwrap_or_else(json);
        Outcome::Found(Answered { body: bytes.freeze(), content_type })
    }
}

// === impl Outcome ===

impl Outcome {
    fn missing(side: Side, why: impl Into<String>) -> Self {
        Self::Missing(Missing::at(side, why))
    }
}

// === impl Missing ===

impl Missing {
    pub fn at(side: Side, why: impl Into<String>) -> Self {
        Self { why: why.into(), side, is_forbidden: false }
    }

    /// The member answered with `code`, which is neither 200 nor 404. Its state is not the caller's
    /// to correct, because members get none of the versions that the caller names.
    fn answered(code: StatusCode) -> Self {
        Self {
            why: format!("it answered {code}"),
            side: if Fault::of(code) == Fault::Request { Side::Caller } else { Side::Member },
            is_forbidden: code == StatusCode::FORBIDDEN,
        }
    }
}

// === impl Sent ===

impl Sent<'_> {
    fn to(&mut self, cluster: &Arc<Cluster>) {
        self.started = Some((Arc::clone(cluster), cluster.metrics().request()));
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let Some((cluster, ..)) = &self.started else { return };
        let code = match self.code {
            Some(code) => code.as_u16(),
            None if self.is_given_up.load(Ordering::Relaxed) => StatusCode::SERVICE_UNAVAILABLE.as_u16(),
            None => CLIENT_CLOSED_REQUEST,
        };
        cluster.metrics().request_done(Dialect::Karmada, (&Method::GET).into(), code);
    }
}

#[cfg(test)]
mod tests {
    use http::header::VIA;
    use tokio::time::advance;

    use super::super::{ALL_WITHIN, AT_ONCE};
    use super::*;
    use crate::holding::Budget;

    /// Otherwise one request would take some hundred tables, and count three.
    #[test]
    fn a_head_counts_for_each_member_that_is_asked_at_once() {
        const LINES: usize = 8000;
        let account = holding::open(&Budget::new(1 << 40), 0, [10, 0, 0, 1].into());
        let (before, mut headers) = (account.held(), HeaderMap::new());
        for _ in 0..LINES {
            headers.append(VIA, HeaderValue::from_static("a"));
        }
        let head = Head { uri: Uri::from_static("/"), headers };
        let copies = head.counted(AT_ONCE, &User::default(), &account);
        assert!(account.held() - before > (AT_ONCE * 3 * 70 * LINES) as u64, "{}", account.held() - before);
        drop(copies);
        assert_eq!(account.held(), before);
    }

    #[test]
    fn the_callers_groups_count_for_each_member_that_is_asked_at_once() {
        let account = holding::open(&Budget::new(1 << 40), 0, [10, 0, 0, 1].into());
        let (before, head) = (account.held(), Head { uri: Uri::from_static("/"), headers: HeaderMap::new() });
        let user = User { groups: vec!["g".repeat(1000); 100], ..User::default() };
        let _copies = head.counted(AT_ONCE, &user, &account);
        assert!(account.held() - before > (AT_ONCE * 100 * 1000) as u64, "{}", account.held() - before);
    }

    #[test]
    fn a_members_refusal_of_the_caller_is_no_failure_of_the_member() {
        let missing = |code| Missing::answered(StatusCode::from_u16(code).unwrap());
        for code in [400, 403, 405, 406, 415, 422] {
            assert_eq!((missing(code).side, missing(code).is_forbidden), (Side::Caller, code == 403), "{code}");
        }
        for code in [301, 408, 409, 410, 421, 423, 425, 429, 500] {
            assert_eq!((missing(code).side, missing(code).is_forbidden), (Side::Member, false), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_comes_too_late_is_not_asked() {
        let until = Instant::now() + ALL_WITHIN;
        assert_eq!(deadline(until), Some(Instant::now() + WITHIN));
        advance(ALL_WITHIN.saturating_sub(WITHIN / 2)).await;
        assert_eq!(deadline(until), Some(until));
        advance(WITHIN / 2).await;
        assert_eq!(deadline(until), None);
    }
}
