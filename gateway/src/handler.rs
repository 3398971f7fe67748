//! Handles one request, from its head to its response.

mod refusal;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use api::route::{BesideRoute, ProxyRoute, Route};
use auth::Permission;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response};
use hyper::upgrade::OnUpgrade;
use traces::{Span, Trace, Traces};

use self::refusal::refuse;
use crate::audit::Draft;
use crate::beside;
use crate::body::ResponseBody;
use crate::connection::Connection;
use crate::error::{Cause, Error};
use crate::every;
use crate::holding::Account;
use crate::needs::RequestNeeds;
use crate::proxy::{self, Answer, forward, subpath, upgrade};
use crate::record::{Answered, Record, RecordedBody, Sending};
use crate::request::{Head, RequestLine};
use crate::request_body::{BoxedRequest, RequestBody};
use crate::resources;
use crate::spans::{self, Step};

/// Responds to a request. A request that holds too many bytes, counted in `account`, fails. Every
/// failure becomes a `metav1.Status`.
pub async fn handle(
    connection: Arc<Connection>,
    mut request: BoxedRequest,
    account: &Account,
) -> Response<RecordedBody> {
    let gateway = connection.gateway();
    let line = RequestLine::of(&request);
    let head = Head::read(&line, &request, connection.served(), gateway.settings.upgrade_verb);
    let audit = Draft::begin(&connection, &mut request, &head.parsed);
    let span = gateway.traces.as_ref().and_then(|traces| trace(traces, &connection, &mut request, &head));
    let mut record = Record::started(gateway, audit, span, &request, &head);
    let trace = record.trace();
    let mut client = head.asks_upgrade.then(|| hyper::upgrade::on(&mut *request));
    let is_read = request.method().is_safe();
    let trace = trace.as_ref();
    let responded =
        while_fits(account, pin!(respond(&connection, request, &head, &mut client, &mut record, trace, account))).await;
    let responded = match responded {
        // The response to a read is replaced if the request held too much meanwhile: nothing of it
        // has been sent. A write keeps its response, because an error would leave its outcome
        // unknown.
        Ok(answer) if is_read && account.is_ended() && answer.is_own() => Err(Error::HeldTooMuch),
        responded => responded,
    };
    let (answer, refusal) = match responded {
        Ok(answer) => (answer, None),
        Err(error) => {
            let (answer, refusal) = refuse(&connection, &head, error, account, &mut record);
            (answer, Some(refusal))
        }
    };
    let Answer { mut response, joined } = answer;
    if head.is_bodyless
        && let Some(length) = response.body_mut().without_own_bytes()
    {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    upgrade::or_close(client, &mut response);
    let (status, is_upgraded) = (response.status(), joined.is_some());
    let is_stream = is_upgraded || response.body().is_stream();
    record.answered(Answered { status, headers: response.headers_mut(), is_stream, is_upgraded, refusal });
    let Some(joined) = joined else {
        record.continues(response.body(), || Sending::of(gateway, &line, connection.served(), account));
        return response.map(|body| RecordedBody::new(body, Some(record)));
    };
    tokio::spawn(joined.carry(record));
    response.map(|body| RecordedBody::new(body, None))
}

/// `responding`, until the request holds too many bytes.
fn while_fits(
    account: &Account,
    mut responding: Pin<&mut impl Future<Output = Result<Answer, Error>>>,
) -> impl Future<Output = Result<Answer, Error>> {
    poll_fn(move |cx| match account.check(cx) {
        Ok(()) => responding.as_mut().poll(cx),
        Err(_) => Poll::Ready(Err(Error::HeldTooMuch)),
    })
}

/// The phases of a request, in order.
async fn respond(
    connection: &Arc<Connection>,
    mut request: BoxedRequest,
    head: &Head<'_>,
    client: &mut Option<OnUpgrade>,
    record: &mut Record,
    trace: Option<&Trace>,
    account: &Account,
) -> Result<Answer, Error> {
    let gateway = connection.gateway();
    let upgrade = head.check(&request)?;
    let step = Step::begin(trace, spans::AUTHENTICATION);
    let identity = gateway.authenticator.identify(connection.peer(), request.headers_mut()).await.map_err(Error::from);
    step.ended(&identity, Error::side_word);
    let identity = identity?;
    account.holder().identified(&identity.user);
    connection.authenticated(&identity.user);
    let identified = record.identified(&identity);
    let step = Step::begin(trace, spans::AUTHORIZATION);
    let permission = gateway.authorizer.authorize(identity.user, head.parsed.attributes.clone()).await;
    let permission = permission.map_err(Error::from);
    step.ended(&permission, Error::side_word);
    let permission = permission?;
    let admitted = identified.admitted(&gateway.limits, &permission)?;
    match &head.parsed.route {
        Route::Proxy(route) => {
            if gateway.settings.authorize_subpath {
                Box::pin(second_review(gateway, &permission, route, trace)).await?;
            }
            let found = gateway.cluster(&route.cluster).await;
            let cluster = found.map_err(|error| Error::lookup(&route.cluster, error))?;
            admitted.sent_to(&cluster, route.asks.resource(), &gateway.limits, &permission)?;
            let acting = gateway.acting(&cluster, permission.user(), route).await;
            let acting = acting.map_err(|reason| Cause::Invalid(reason).at(cluster.name()))?;
            let asked = (route.prefix, &route.asks);
            let call =
                proxy::Call::new(connection, cluster, asked, permission, acting, account).counted().traced(trace);
            match upgrade {
                // Boxed, like the other arms: most requests are plain ones for members, and must
                // not carry memory for the other kinds.
                Some(upgrade) => Box::pin(upgrade::serve(&call, upgrade, request, client)).await,
                None => forward::serve(&call, request).await.map(Answer::from),
            }
        }
        Route::Beside(BesideRoute::Forwarded { asks, description }) => {
            let call = beside::call(connection, asks, admitted, permission, account)?.traced(trace);
            Box::pin(beside::forward(&call, *description, upgrade, request, client)).await
        }
        Route::Every(_) if upgrade.is_some() => Err(Error::MethodNotAllowed),
        _ if upgrade.is_some() => Err(Error::BadRequest("this path does not support upgrades")),
        route => Box::pin(own(connection, route, permission, *request, account)).await.map(Answer::from),
    }
}

/// Reviews what the request does on the member.
async fn second_review(
    gateway: &RequestNeeds,
    permission: &Permission,
    route: &ProxyRoute<'_>,
    trace: Option<&Trace>,
) -> Result<(), Error> {
    let step = Step::begin(trace, spans::AUTHORIZATION);
    let reviewed = subpath::authorize(gateway, Arc::clone(permission.user()), route).await;
    step.ended(&reviewed, Error::side_word);
    reviewed
}

/// Returns the request's span, if it is recorded. Probes and scrapes are not, as in the audit log:
/// they show nothing about any user and come every second.
fn trace(
    traces: &Traces,
    connection: &Connection,
    request: &mut Request<RequestBody>,
    head: &Head<'_>,
) -> Option<Span> {
    if matches!(head.parsed.route, Route::Probe(_) | Route::Metrics) {
        return None;
    }
    let is_hubs = || connection.gateway().authenticator.recognize(connection.peer());
    spans::request(traces, request, head.cluster(), is_hubs)
}

/// Serves the routes that the gateway answers itself.
async fn own(
    connection: &Arc<Connection>,
    route: &Route<'_>,
    permission: Permission,
    request: Request<RequestBody>,
    account: &Account,
) -> Result<Response<ResponseBody>, Error> {
    let gateway = connection.gateway();
    if let Route::Beside(BesideRoute::Shared(document)) = route {
        return Box::pin(beside::shared(connection, *document, permission, &request, account)).await;
    }
    let permission = &permission;
    match route {
        Route::Every(every) => Box::pin(every::serve(connection, every, permission, &request, account)).await,
        Route::Clusters(clusters) => resources::clusters(gateway, permission, clusters, &request).await,
        Route::Discovery(document) => Ok(resources::discovery(*document, request.headers())),
        Route::Probe(probe) => Ok(resources::probe(gateway, *probe, request.uri().query())),
        Route::ProbeCheck(check) => resources::probe_check(gateway, check),
        Route::Version => Ok(resources::version()),
        Route::Metrics => Ok(resources::metrics(gateway).await),
        Route::LogLevel => resources::log_level(gateway, permission, request).await,
        Route::MethodNotAllowed => Err(Error::MethodNotAllowed),
        Route::BadRequest(reason) => Err(Error::BadPath(*reason)),
        Route::OpenApi(document) => resources::open_api(*document, &request),
        Route::Health { cluster, action } => {
            resources::health(gateway, permission, cluster.clone(), *action, request).await
        }
        Route::Traffic(cluster) => resources::traffic(gateway, permission, cluster, &request).await,
        Route::VirtualClusters(clusters) => resources::virtual_clusters(gateway, permission, clusters, &request).await,
        Route::Karmada(karmada) => resources::karmada(gateway, permission, karmada, request).await,
        Route::NoMember(why) => Err(Error::NoMember(*why)),
        Route::WorkloadService => Err(Error::WorkloadService),
        Route::NotFound | Route::Proxy(_) | Route::Beside(_) => Err(Error::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of requests may wait for their members at once, so state that few of them need
    /// belongs in a box.
    #[test]
    fn a_request_that_waits_takes_little_memory() {
        fn size<A, B, C, F: Future>(_: impl Fn(A, B, C) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = size(handle);
        assert!(bytes <= 6 * 1024, "{bytes} bytes");
    }
}
