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
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, RANGE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::{Room, WITHIN, json};
use crate::body::ResponseBody;
use crate::clusters::Cluster;
use crate::connection::Connection;
use crate::error::{Cause, Error};
use crate::holding::Account;
use crate::limits::Kind;
use crate::proxy::{Call, forward, subpath};
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
}

/// What came of one member.
pub enum Outcome {
    Found(Answered),
    /// It has no such thing, or the caller may not know of it.
    Nothing,
    /// It did not say, and why.
    Missing(String),
    /// There is no room for it.
    TooLarge,
    /// Whether the caller may know of it is not known: nobody is told anything.
    Unreviewed(Error),
}

/// A member's 200.
pub struct Answered {
    pub body: Bytes,
    pub content_type: HeaderValue,
}

/// Parameters that mean something for one member only: pages, and versions.
const OF_ONE: [&str; 5] = ["limit", "continue", "resourceVersion", "resourceVersionMatch", "sendInitialEvents"];

/// The request without what is for one member only. JSON alone can be merged.
pub fn head(route: &EveryRoute<'_>, request: &Request<RequestBody>, form: Representation) -> Result<Head, Error> {
    let mut headers = request.headers().clone();
    for name in [ACCEPT_ENCODING, IF_MATCH, IF_NONE_MATCH, RANGE] {
        headers.remove(name);
    }
    headers.insert(ACCEPT, HeaderValue::from_static(accepted(form, route.is_list)));
    let uri = if route.is_list { without_pages(request.uri())? } else { request.uri().clone() };
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

fn without_pages(uri: &Uri) -> Result<Uri, Error> {
    let Some(query) = uri.query() else { return Ok(uri.clone()) };
    if api::query::first(Some(query), "continue").is_some_and(|token| !token.is_empty()) {
        return Err(Error::BadRequest("a list of all clusters has no pages: leave out continue"));
    }
    let is_for_all = |pair: &&str| {
        let named = api::query::pairs(pair).next();
        named.is_none_or(|(name, _)| !OF_ONE.contains(&&*name))
    };
    let kept: Vec<&str> = query.split('&').filter(is_for_all).collect();
    let target = if kept.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), kept.join("&")) };
    target.parse().map_err(|_| Error::BadRequest("the query cannot be read"))
}

// === impl Asking ===

impl Asking<'_> {
    /// Boxed: there are many at once.
    pub async fn one(&self, name: &ClusterName) -> Outcome {
        match timeout(WITHIN, Box::pin(self.asked(name))).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Outcome::Missing(error.into_status().message().to_owned()),
            Err(_) => Outcome::Missing(format!("it did not answer within {} s", WITHIN.as_secs())),
        }
    }

    async fn asked(&self, name: &ClusterName) -> Result<Outcome, Error> {
        let gateway = self.connection.gateway();
        let permit = match self.reviewed(name).await {
            Ok(Some(permit)) => permit,
            Ok(None) => return Ok(Outcome::Nothing),
            Err(error) => return Ok(Outcome::Unreviewed(error.into())),
        };
        let asks = self.route.asks.clone();
        let route = ProxyRoute { cluster: name.clone(), asks, prefix: self.route.prefix, dialect: Dialect::Karmada };
        if gateway.settings.authorize_subpath {
            match subpath::authorize(gateway, Arc::clone(permit.user()), &route).await {
                Err(Error::Authorization(AuthorizationError::Forbidden { .. })) => return Ok(Outcome::Nothing),
                reviewed => reviewed?,
            }
        }
        let cluster = match gateway.cluster(name).await {
            Ok(cluster) => cluster,
            Err(error) => return Err(Error::lookup(name, error)),
        };
        let limits = &gateway.limits;
        let _slots = [
            limits.of_user(permit.user(), Kind::Short)?,
            limits.of_cluster(name, cluster.load(), permit.user(), Kind::Short)?,
        ];
        let acting = gateway.acting(&cluster, permit.user(), &route).await;
        let acting = acting.map_err(|reason| Cause::Invalid(reason).at(name))?;
        let in_flight = cluster.metrics().request();
        let call = Call::new(self.connection, Arc::clone(&cluster), &route, permit, acting, self.account);
        let answered = forward::serve(&call, self.request()).await;
        let code = answered.as_ref().map_or(0, |response| response.status().as_u16());
        let outcome = match answered {
            Ok(response) => self.read(response).await,
            Err(error) => Err(error),
        };
        counted(&cluster, code, outcome.is_ok());
        drop(in_flight);
        outcome
    }

    /// The caller's permit for this cluster; `None` if it may not.
    async fn reviewed(&self, name: &ClusterName) -> Result<Option<Permit>, AuthorizationError> {
        let attributes = Attributes::Resource(ResourceAttributes {
            verb: Verb::Get,
            group: Cow::Borrowed(GROUP),
            version: Cow::Borrowed(VERSION),
            resource: Cow::Borrowed(CLUSTERS),
            subresource: Cow::Borrowed("proxy"),
            namespace: None,
            name: Some(name.shared()),
            field_selector: None,
            label_selector: None,
        });
        let user = Arc::clone(self.permit.user());
        match self.connection.gateway().authorizer.authorize(user, attributes).await {
            Ok(permit) => Ok(Some(permit)),
            Err(AuthorizationError::Forbidden { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Ok(Outcome::Missing("its answer was cut off".to_owned())) };
            let Ok(data) = frame.into_data() else { continue };
            if !self.room.take(data.len()) {
                return Ok(Outcome::TooLarge);
            }
            bytes.extend_from_slice(&data);
        }
        let content_type = head.headers.get(CONTENT_TYPE).cloned().unwrap_or_else(json);
        Ok(Outcome::Found(Answered { body: bytes.freeze(), content_type }))
    }
}

/// Counts it among the member's requests, as one of its own.
fn counted(cluster: &Cluster, code: u16, is_whole: bool) {
    let code = if code == 0 || !is_whole { StatusCode::BAD_GATEWAY.as_u16() } else { code };
    cluster.metrics().request_done(Dialect::Karmada, (&Method::GET).into(), code);
}
