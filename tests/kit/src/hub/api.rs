//! The hub's request path: authenticate, count, fail if ordered to, answer.

mod objects;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::calls::{Call, Calls, Fault};
use super::query::Query;
use super::refusal::{Refusal, json_response, refuse};
use super::resource::{Resource, Target};
use super::reviews::Reviews;
use super::store::{Key, Store};
use super::watch::{Watch, Watches};
use super::{AUTHENTICATION_NAME, AUTHENTICATION_NAMESPACE};
use crate::server::Body;

/// Largest request body read, as kube-apiserver.
const MAX_BODY: usize = 3 << 20;

pub(super) type Answer = Result<Response<Body>, Refusal>;

/// Everything behind the listener.
#[derive(Debug)]
pub(super) struct Hub {
    authorization: String,
    pub(super) store: Arc<Store>,
    pub(super) reviews: Reviews,
    pub(super) calls: Calls,
    pub(super) watches: Arc<Watches>,
    /// Custom resources there are.
    pub(super) installed: Mutex<HashSet<Resource>>,
}

// === impl Hub ===

impl Hub {
    pub(super) fn new(token: &str) -> Self {
        Self {
            authorization: format!("Bearer {token}"),
            store: Arc::new(Store::new()),
            reviews: Reviews::default(),
            calls: Calls::default(),
            watches: Arc::new(Watches::new()),
            installed: Mutex::default(),
        }
    }

    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        self.serve(&parts, body).await.unwrap_or_else(Response::from)
    }

    async fn serve(&self, parts: &Parts, body: Incoming) -> Answer {
        let target = Target::parse(parts.uri.path());
        let query = match &target {
            Target::Collection(_, namespace) => {
                let raw = parts.uri.query().unwrap_or_default();
                Some(Query::parse(raw, namespace.clone()).map_err(|message| refuse(400, message))?)
            }
            _ => None,
        };
        let call = call(&parts.method, &target, query.as_ref());
        let line = format!("{} {}", parts.method, parts.uri.path_and_query().map_or("", |target| target.as_str()));
        self.calls.heard_from(parts.headers.get(header::USER_AGENT));
        self.fault(self.calls.enter(call, line)).await?;
        let authorization = parts.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        if authorization != Some(self.authorization.as_bytes()) {
            return Err(refuse(401, "Unauthorized"));
        }
        let unknown = |resource: Resource| !resource.is_built_in() && !self.installed.lock().contains(&resource);
        if target.resource().is_some_and(unknown) {
            return Err(refuse(404, "the server could not find the requested resource"));
        }
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| refuse(400, "unreadable body"))?.to_bytes();
        match (&parts.method, target, query) {
            (&Method::GET, Target::Collection(resource, _), Some(query)) => self.collection(resource, query),
            (&Method::GET, Target::Object(resource, namespace, name), _) => {
                self.get(&Key::new(resource, &namespace, &name))
            }
            (method, Target::Object(resource, namespace, name), _) => {
                let dry = parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "dryRun=All"));
                self.write(method, &Key::new(resource, &namespace, &name), &body, dry)
            }
            (&Method::POST, Target::Collection(resource, namespace), _) => self.create(resource, namespace, &body),
            (&Method::POST, Target::TokenReviews, _) => {
                Ok(json_response(201, &self.reviews.review_token(parse(&body)?)))
            }
            (&Method::POST, Target::AccessReviews, _) => {
                Ok(json_response(201, &self.reviews.review_access(parse(&body)?)))
            }
            (&Method::GET, Target::Groups, _) => Ok(json_response(200, &self.groups())),
            (&Method::GET, Target::Version, _) => {
                Ok(json_response(200, &json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4"})))
            }
            (&Method::GET, Target::Health, _) => Ok(json_response(200, &json!("ok"))),
            (_, Target::Unknown, _) => Err(refuse(404, "the server could not find the requested resource")),
            _ => Err(refuse(405, "the server does not allow this method on the requested resource")),
        }
    }

    /// `metav1.APIGroupList`. The core's group is not in it.
    fn groups(&self) -> Value {
        const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];
        let installed = self.installed.lock();
        let there = Resource::ALL.into_iter().filter(|one| one.is_built_in() || installed.contains(one));
        let groups: BTreeSet<_> = there.map(Resource::group).filter(|group| !group.is_empty()).chain(REVIEWS).collect();
        let groups: Vec<_> = groups.into_iter().map(|group| json!({"name": group, "versions": []})).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// Carries out the fault that the test ordered.
    async fn fault(&self, fault: Option<Fault>) -> Result<(), Refusal> {
        match fault {
            None => Ok(()),
            Some(Fault::Status(code)) => Err(refuse(code, "the test says so")),
            Some(Fault::Busy(seconds)) => Err(Refusal::Busy(seconds)),
            Some(Fault::Garbage) => Err(Refusal::Garbage),
            Some(Fault::Answer(code, kind, body)) => Err(Refusal::Answer(code, kind, body)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Delay(delay)) => {
                tokio::time::sleep(delay).await;
                Ok(())
            }
            Some(Fault::Until(gate)) => {
                gate.passed().await;
                Ok(())
            }
        }
    }

    fn collection(&self, resource: Resource, query: Query) -> Answer {
        check_access(resource, &query)?;
        if query.send_initial_events.is_some()
            && (!query.watch || query.version_match.as_deref() != Some("NotOlderThan"))
        {
            let message = "sendInitialEvents is allowed for watch only, with resourceVersionMatch NotOlderThan";
            return Err(refuse(422, message));
        }
        Ok(if query.watch { self.watch(resource, query) } else { self.list(resource, &query) })
    }

    fn watch(&self, resource: Resource, query: Query) -> Response<Body> {
        let (watch, body) = Watch::new(resource, query, self.store.clone(), self.watches.clone());
        tokio::spawn(watch.run()); // ends when the body is dropped, at the latest with its connection
        let mut response = Response::new(Body::new(body));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn call(method: &Method, target: &Target, query: Option<&Query>) -> Call {
    let reads = method == Method::GET;
    match target {
        Target::Collection(resource, _) if reads && query.is_some_and(|query| query.watch) => Call::Watch(*resource),
        Target::Collection(resource, _) if reads => Call::List(*resource),
        Target::Object(resource, ..) if reads => Call::Get(*resource),
        Target::Collection(resource, _) | Target::Object(resource, ..) => Call::Write(*resource),
        Target::TokenReviews => Call::TokenReview,
        Target::AccessReviews => Call::AccessReview,
        Target::Groups => Call::Groups,
        Target::Version | Target::Health | Target::Unknown => Call::Other,
    }
}

/// The stock Role for the authentication ConfigMap names that one resource, so a list or watch of
/// it needs the matching selector; without, a real hub answers 403.
fn check_access(resource: Resource, query: &Query) -> Result<(), Refusal> {
    let of_kube_system = query.filter.namespace.as_deref() == Some(AUTHENTICATION_NAMESPACE);
    let allowed = of_kube_system && query.filter.fields.required("metadata.name") == Some(AUTHENTICATION_NAME);
    if resource == Resource::ConfigMaps && !allowed {
        return Err(refuse(
            403,
            "configmaps is forbidden: only the authentication ConfigMap may be listed, by its name",
        ));
    }
    Ok(())
}

fn parse(body: &Bytes) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| refuse(400, error.to_string()))
}
