//! One request, from its head to its response.

use std::sync::Arc;

use api::accept;
use api::route::{self, Asked, Route};
use auth::Permit;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Request, Response};
use hyper::upgrade::OnUpgrade;

use crate::body::ResponseBody;
use crate::connection::Connection;
use crate::error::Error;
use crate::limits;
use crate::proxy::upgrade::{self, Upgrade};
use crate::proxy::{self, framing, subpath};
use crate::record::{Record, RecordedBody};
use crate::request_body::RequestBody;
use crate::resources;

/// Answers a request; every failure becomes a `metav1.Status`.
pub async fn handle(connection: Arc<Connection>, mut request: Request<RequestBody>) -> Response<RecordedBody> {
    let mut record = Record::start(&connection.gateway().own_metrics, request.method());
    let mut client = upgrade::client(&mut request);
    let bodyless = request.method() == Method::HEAD;
    let form = accept::status(request.headers());
    let mut response = match respond(&connection, request, &mut client, &mut record).await {
        Ok(response) => response,
        Err(error) => {
            let (verdict, cluster) = (error.verdict(), record.cluster());
            let side = verdict.side.as_str();
            if verdict.is_operational {
                tracing::warn!(cluster, side, ?error, "request failed");
            } else {
                tracing::debug!(cluster, side, ?error, "request refused");
            }
            connection.gateway().metrics.failed(side);
            if error.is_unauthenticated() && !connection.peer().is_front_proxy() {
                connection.close_soon();
            }
            record.failed(&error);
            error.into_response_as(form.pick())
        }
    };
    if bodyless && let Some(length) = response.body_mut().without_own_bytes() {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let mut response = upgrade::or_close(client, response);
    record.answered(response.status(), response.headers_mut());
    response.map(|body| RecordedBody::new(body, record))
}

/// The phases of a request, in order.
async fn respond(
    connection: &Arc<Connection>,
    mut request: Request<RequestBody>,
    client: &mut Option<OnUpgrade>,
    record: &mut Record,
) -> Result<Response<ResponseBody>, Error> {
    let gateway = connection.gateway();
    // Kept apart, because what was read of it is asked until the end, and the request is taken to pieces before.
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let gains = client.is_some().then(|| gateway.settings.upgrade_verb);
    let parsed = route::parse(Asked { method: &method, path: uri.path(), query: uri.query(), upgrade: gains });
    record.asks(connection, &mut request, &parsed);
    framing::check(&request)?;
    let upgrade = Upgrade::requested(&request)?;
    let kind = limits::kind(&parsed, upgrade.is_some());
    let identity = gateway.authenticator.identify(connection.peer(), request.headers_mut()).await?;
    record.is_by(&identity);
    let permit = gateway.authorizer.authorize(identity.user, parsed.attributes).await?;
    record.permitted(connection, &permit, kind)?;
    // By reference: it is large, and every move of it is a copy.
    match &parsed.route {
        Route::Proxy(route) => {
            record.will_use(&route.cluster);
            if gateway.settings.authorize_subpath {
                Box::pin(subpath::authorize(gateway, Arc::clone(permit.user()), route)).await?;
            }
            let found = gateway.cluster(&route.cluster).await;
            let cluster = found.map_err(|error| Error::lookup(&route.cluster, error))?;
            record.uses(connection, &cluster, route.asks.resource(), &permit)?;
            let acting = gateway.acting(&cluster, permit.user(), &route.asks);
            let acting = acting.map_err(|reason| Error::invalid(cluster.name(), reason))?;
            let call = proxy::Call::new(connection, cluster, route, permit, acting);
            match upgrade {
                // Boxed, as what follows: most requests are plain ones for members, and carry no room for others.
                Some(upgrade) => Box::pin(upgrade.serve(call, request, client, record)).await,
                None => proxy::forward::serve(call, request, record).await,
            }
        }
        _ if upgrade.is_some() => Err(Error::BadRequest("this path takes no upgrade")),
        route => {
            let response = Box::pin(own(connection, route, &permit, request)).await?;
            if response.body().is_stream() {
                record.is_stream();
            }
            Ok(response)
        }
    }
}

/// What the gateway answers itself.
async fn own(
    connection: &Connection,
    route: &Route<'_>,
    permit: &Permit,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let gateway = connection.gateway();
    match route {
        Route::Clusters(clusters) => resources::clusters(gateway, permit, clusters, &request).await,
        Route::Discovery(document) => Ok(resources::discovery(*document, request.headers())),
        Route::Probe(probe) => Ok(resources::probe(gateway, *probe, request.uri().query())),
        Route::ProbeCheck(check) => resources::probe_check(gateway, check),
        Route::Version => Ok(resources::version()),
        Route::Metrics => Ok(resources::metrics(gateway).await),
        Route::LogLevel => resources::log_level(gateway, permit, request).await,
        Route::MethodNotAllowed => Err(Error::MethodNotAllowed),
        Route::BadRequest(reason) => Err(Error::BadPath(*reason)),
        Route::OpenApi(document) => resources::open_api(*document, &request),
        Route::Health { cluster, action } => {
            resources::health(gateway, permit, cluster.clone(), *action, request).await
        }
        Route::VirtualClusters(clusters) => resources::virtual_clusters(gateway, permit, clusters, &request).await,
        Route::NotFound | Route::Proxy(_) => Err(Error::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of requests may wait for their members at once. What few of them need belongs into boxes of its own.
    #[test]
    fn a_request_that_waits_takes_little_memory() {
        fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = size(handle);
        assert!(bytes <= 6 * 1024, "{bytes} bytes");
    }
}
