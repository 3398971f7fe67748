//! One member's part of a request for all.

use std::borrow::Cow;
use std::sync::Arc;

use api::accept::{MetaVersion, Representation};
use api::access::{Attributes, ResourceAttributes, Verb};
use api::cluster_name::ClusterName;
use api::karmada::{CLUSTERS, GROUP, VERSION};
use api::route::{Dialect, EveryRoute, ProxyRoute};
use auth::{AuthorizationError, Permit};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use super::room::Room;
use super::{LAST, WITHIN, json, took_too_long};
use crate::body::ResponseBody;
use crate::clusters::Cluster;
use crate::connection::Connection;
use crate::error::{Cause, Error};
use crate::holding::Account;
use crate::limits::Kind;
use crate::metrics::InFlight;
use crate::proxy::{Call, forward, subpath};
use crate::record::CLIENT_CLOSED_REQUEST;
use crate::request_body::RequestBody;

/// The head of what each member is asked.
pub struct Head {
    uri: Uri,
    headers: HeaderMap,
}

/// Who asks, and for what.
pub struct Asking<'a> {
    pub connection: &'a Arc<Connection>,
    pub route: &'a EveryRoute<'a>,
    /// For the cluster `*`.
    pub permit: &'a Permit,
    pub account: &'a Account,
    pub room: &'a Room,
    pub head: Head,
    /// When no member is waited for any more.
    pub until: Instant,
}

/// What came of one member.
pub enum Outcome {
    Found(Answered),
    /// It has no such thing, or the caller may not know of it.
    Nothing,
    /// It did not say, and why.
    Missing(String),
    /// Whether the caller may know of it is not known: nobody is told anything.
    Unreviewed(Error),
}

/// A member's 200.
pub struct Answered {
    pub body: Bytes,
    pub content_type: HeaderValue,
}

/// A member's request, counted as one of its own when it has ended, however that was.
#[derive(Default)]
struct Sent {
    /// Absent: no member was asked.
    started: Option<(Arc<Cluster>, InFlight)>,
    /// 0 until it is known: the client went away before.
    code: u16,
}

/// Parameters that mean something for one member only: pages, and versions.
const OF_ONE: [&str; 5] = ["limit", "continue", "resourceVersion", "resourceVersionMatch", "sendInitialEvents"];

/// Of the caller's headers, those that are each member's too: who asks, on which way, and as part
/// of what. Any other may speak of a body that is not sent on, or of one member's answer.
const OF_ALL: [&str; 6] = ["user-agent", "via", "x-forwarded-for", "traceparent", "tracestate", "audit-id"];

/// The request without what is for one member only. JSON alone can be merged.
pub fn head(route: &EveryRoute<'_>, request: &Request<RequestBody>, form: Representation) -> Result<Head, Error> {
    if !request.body().is_end_stream() || request.headers().contains_key(TRANSFER_ENCODING) {
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

/// `uri` without pages. A row without an object could not say whose it is.
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

// === impl Asking ===

impl Asking<'_> {
    /// Boxed: there are many at once.
    pub async fn one(&self, name: &ClusterName) -> Outcome {
        let route = ProxyRoute {
            cluster: name.clone(),
            asks: self.route.asks.clone(),
            prefix: self.route.prefix,
            dialect: Dialect::Karmada,
        };
        // What is not known in time must not become a name in a warning.
        let permit = match timeout_at(self.until + LAST, Box::pin(self.reviewed(&route))).await {
            Ok(Ok(Some(permit))) => permit,
            Ok(Ok(None)) => return Outcome::Nothing,
            Ok(Err(error)) => return Outcome::Unreviewed(error),
            Err(_) => return Outcome::Unreviewed(took_too_long()),
        };
        let within = self.until.min(Instant::now() + WITHIN);
        let mut sent = Sent::default();
        match timeout_at(within, Box::pin(self.asked(&route, permit, &mut sent))).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Outcome::Missing(error.into_status().message().to_owned()),
            Err(_) => {
                sent.code = StatusCode::GATEWAY_TIMEOUT.as_u16();
                let is_last = within == self.until;
                let late = || format!("it did not answer within {} s", WITHIN.as_secs());
                Outcome::Missing(if is_last { "there was no time left to ask it".to_owned() } else { late() })
            }
        }
    }

    async fn asked(&self, route: &ProxyRoute<'_>, permit: Permit, sent: &mut Sent) -> Result<Outcome, Error> {
        let (gateway, name) = (self.connection.gateway(), &route.cluster);
        let cluster = match gateway.cluster(name).await {
            Ok(cluster) => cluster,
            Err(error) => return Err(Error::lookup(name, error)),
        };
        let limits = &gateway.limits;
        let _slots = [
            limits.of_user(permit.user(), Kind::Short)?,
            limits.of_cluster(name, cluster.load(), permit.user(), Kind::Short)?,
        ];
        let acting = gateway.acting(&cluster, permit.user(), route).await;
        let acting = acting.map_err(|reason| Cause::Invalid(reason).at(name))?;
        sent.to(&cluster);
        let call = Call::new(self.connection, Arc::clone(&cluster), route, permit, acting, self.account);
        let answered = forward::serve(&call, self.request()).await;
        let code = answered.as_ref().map_or(StatusCode::BAD_GATEWAY, Response::status);
        let outcome = match answered {
            Ok(response) => self.read(response).await,
            Err(error) => Err(error),
        };
        sent.code = code.as_u16();
        outcome
    }

    /// The caller's permit for this cluster; `None` if it may not.
    async fn reviewed(&self, route: &ProxyRoute<'_>) -> Result<Option<Permit>, Error> {
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
        let user = Arc::clone(self.permit.user());
        let permit = match gateway.authorizer.authorize(user, attributes).await {
            Ok(permit) => permit,
            Err(AuthorizationError::Forbidden { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if gateway.settings.authorize_subpath {
            match subpath::authorize(gateway, Arc::clone(permit.user()), route).await {
                Err(Error::Authorization(AuthorizationError::Forbidden { .. })) => return Ok(None),
                reviewed => reviewed?,
            }
        }
        Ok(Some(permit))
    }

    fn request(&self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::empty(Some(self.account.clone())));
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.head.uri.clone();
        *request.headers_mut() = self.head.headers.clone();
        request
    }

    async fn read(&self, response: Response<ResponseBody>) -> Result<Outcome, Error> {
        let (head, mut body) = response.into_parts();
        match head.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(Outcome::Nothing),
            code => return Ok(Outcome::Missing(format!("it answered {code}"))),
        }
        let (mut bytes, mut share) = (BytesMut::new(), self.room.share());
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Ok(Outcome::Missing("its answer was cut off".to_owned())) };
            let Ok(data) = frame.into_data() else { continue };
            if !share.take(data.len()) {
                return Ok(Outcome::Missing("its answer is too large beside the others'".to_owned()));
            }
            bytes.extend_from_slice(&data);
        }
        let content_type = head.headers.get(CONTENT_TYPE).cloned().unwrap_or_else(json);
        Ok(Outcome::Found(Answered { body: bytes.freeze(), content_type }))
    }
}

// === impl Sent ===

impl Sent {
    fn to(&mut self, cluster: &Arc<Cluster>) {
        self.started = Some((Arc::clone(cluster), cluster.metrics().request()));
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let Some((cluster, ..)) = &self.started else { return };
        let (metrics, code) = (cluster.metrics(), if self.code == 0 { CLIENT_CLOSED_REQUEST } else { self.code });
        metrics.request_done(Dialect::Karmada, (&Method::GET).into(), code);
    }
}
