//! From a request to its answer.
//!
//! Order as in a real API server: identity first, then the route, then the representation; whatever is refused
//! on the way becomes a Status.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
    request::Parts,
};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    clock::Clock,
    documents,
    kind::Kind,
    log::{LogOptions, LogStream},
    negotiate::{Representation, negotiate},
    object::Key,
    render::Render,
    request::{Query, Route},
    sample::Profile,
    selector::Selection,
    status::Refusal,
    watch::{self, Hub, Since},
};

/// The body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

const JSON: &str = "application/json";

/// What all requests of a member share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Which cluster this is.
    pub(crate) profile: &'static Profile,
    /// The only token that is let in.
    pub(crate) token: SecretString,
    /// The objects and their watches.
    pub(crate) hub: Arc<Hub>,
    /// The member's time.
    pub(crate) clock: Clock,
    /// Ends streams when the member stops.
    pub(crate) stop: CancellationToken,
}

// === impl Shared ===

impl Shared {
    /// Answers a request. Bodies are not read: nothing a sample member serves has one.
    pub(crate) fn answer(&self, request: &Parts) -> Response<Body> {
        self.try_answer(request).unwrap_or_else(|refusal| refused(&refusal))
    }

    fn try_answer(&self, request: &Parts) -> Result<Response<Body>, Refusal> {
        self.authenticate(&request.headers)?;
        let route = Route::parse(&request.method, request.uri.path())?;
        let query = Query::parse(request.uri.query().unwrap_or_default());
        if let Route::Log { namespace, name } = route {
            return self.log(Key::new(Kind::Pod, namespace, name), &query);
        }
        let wanted = negotiate(&request.headers)?;
        let discovery = |aggregated: fn() -> Value, plain: fn() -> Value| match wanted {
            Representation::Discovery => document(documents::AGGREGATED, &aggregated()),
            _ => document(JSON, &plain()),
        };
        match route {
            Route::Health => Ok(whole("text/plain; charset=utf-8", Bytes::from_static(b"ok"))),
            Route::Version => Ok(document(JSON, &documents::version(self.profile.version))),
            Route::Core => Ok(discovery(documents::aggregated_core, documents::core_versions)),
            Route::Groups => Ok(discovery(documents::aggregated_groups, documents::groups)),
            Route::Resources(group) => Ok(document(JSON, &documents::resources(group))),
            Route::OpenApi => Ok(document(JSON, &documents::openapi())),
            Route::Collection { kind, namespace } => {
                let selection =
                    Selection::all(kind, namespace).narrow(query.text("labelSelector"), query.text("fieldSelector"))?;
                self.collection(selection, &query, Render::new(wanted, &query)?)
            }
            Route::Object { kind, namespace, name } => {
                self.object(&Key::new(kind, namespace, name), &Render::new(wanted, &query)?)
            }
            Route::Log { .. } => Err(Refusal::NoSuchPath),
        }
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let token = value.strip_prefix(b"Bearer ").ok_or(Refusal::Unauthorized)?;
        // A plain comparison: the token guards invented data on a loopback address.
        if token == self.token.expose_secret().as_bytes() { Ok(()) } else { Err(Refusal::Unauthorized) }
    }

    fn object(&self, key: &Key, render: &Render) -> Result<Response<Body>, Refusal> {
        let missing = || Refusal::NoSuchObject { kind: key.kind, name: key.name.clone() };
        let object = self.hub.get(key).ok_or_else(missing)?;
        Ok(document(JSON, &render.object(key.kind, &object.body, self.clock.now())))
    }

    fn collection(&self, selection: Selection, query: &Query, render: Render) -> Result<Response<Body>, Refusal> {
        // client-go's reflectors wait for ever for an answer that ignores the parameter; 422 sends them back to
        // list and watch (client-go `tools/cache/reflector.go`).
        if query.flag("sendInitialEvents") {
            return Err(Refusal::NoInitialEvents);
        }
        if !query.flag("watch") {
            let (objects, version) = self.hub.list(&selection);
            return Ok(document(JSON, &render.list(selection.kind, &objects, version, self.clock.now())));
        }
        let since = match query.number("resourceVersion")? {
            None | Some(0) => Since::Now,
            Some(version) => Since::Version(version),
        };
        let timeout_seconds = query.number("timeoutSeconds")?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let subscription = self.hub.subscribe(&selection, since)?;
        let options = watch::Options { selection, render, bookmarks, timeout_seconds };
        let watch = watch::Stream::new(options, subscription, self.clock.clone(), self.stop.clone());
        Ok(streamed(JSON, stream::unfold(watch, async |mut watch| Some((watch.next().await?, watch)))))
    }

    fn log(&self, key: Key, query: &Query) -> Result<Response<Body>, Refusal> {
        let options = LogOptions::parse(query)?;
        let log = LogStream::open(Arc::clone(&self.hub), key, options, &self.clock, self.stop.clone())?;
        Ok(streamed("text/plain", stream::unfold(log, async |mut log| Some((log.next().await?, log)))))
    }
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = document(JSON, &refusal.to_status());
    *response.status_mut() = StatusCode::from_u16(refusal.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if *refusal == Refusal::Unauthorized {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"member\""));
    }
    response
}

fn document(media_type: &'static str, value: &Value) -> Response<Body> {
    whole(media_type, Bytes::from(value.to_string()))
}

fn whole(media_type: &'static str, bytes: Bytes) -> Response<Body> {
    respond(media_type, Full::new(bytes).boxed_unsync())
}

fn streamed(media_type: &'static str, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    use futures_util::StreamExt as _;
    let frames = pieces.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    respond(media_type, StreamBody::new(frames).boxed_unsync())
}

fn respond(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
