//! Upgrades (exec, attach, port-forward, WebSocket watches): a connection of their own to the member, and after its 101 a byte
//! pipe that understands nothing of what it carries.

mod relay;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use tokio::time::timeout;

use super::workload::{self, Answer};
use super::{Call, attempt, credential, uri};
use crate::body::ResponseBody;
use crate::clusters::Held;
use crate::error::Error;
use crate::headers::{self, size};
use crate::record::Record;
use crate::request_body::RequestBody;
use crate::upstream::SendError;

/// The member's answer may take as long as it needs to start a container's process, but not for ever.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// A request that asks for an upgrade we know.
pub struct Upgrade {
    protocol: Vec<HeaderValue>,
}

/// The client's connection, for when it stops being HTTP; `None` if the request does not ask for that (RFC 9110 §7.8). HTTP/2 has
/// no such wish.
pub fn client(request: &mut Request<RequestBody>) -> Option<OnUpgrade> {
    is_asked_by(request).then(|| hyper::upgrade::on(request))
}

/// Makes the answer to a request for an upgrade the last on its connection, unless `client` was taken for one: bytes of the
/// other protocol may follow the request, and must not be read as the next.
pub fn or_close(client: Option<OnUpgrade>, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if let Some(client) = client {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        tokio::spawn(relay::close(client));
    }
    response
}

fn is_asked_by(request: &Request<RequestBody>) -> bool {
    request.version() < Version::HTTP_2
        && request.headers().get_all(CONNECTION).iter().any(|value| headers::has_token(value, "upgrade"))
}

// === impl Upgrade ===

impl Upgrade {
    /// Takes the upgrade out of a request, if it asks for one.
    ///
    /// Only protocols of Kubernetes pass: forwarding others, such as `h2c`, would smuggle requests past every check made here
    /// (CVE-2022-41721). A hub sends anything whose `Connection` holds the word on this path, so half-made
    /// requests are answered rather than served.
    pub fn requested(request: &Request<RequestBody>) -> Result<Option<Self>, Error> {
        if !is_asked_by(request) {
            return Ok(None);
        }
        let protocol: Vec<_> = request.headers().get_all(UPGRADE).iter().cloned().collect();
        if protocol.is_empty() {
            return Err(Error::BadRequest("Upgrade request required"));
        }
        if !protocol.iter().all(is_known) {
            return Err(Error::BadRequest("only upgrades to websocket and SPDY/3.1 are served"));
        }
        if request.headers().contains_key(TRANSFER_ENCODING) {
            return Err(Error::BadRequest("an upgrade request must not have a chunked body"));
        }
        Ok(Some(Self { protocol }))
    }

    /// Asks the member, and joins the two connections if it agrees. Takes `client` only then.
    ///
    /// No client upgrades by another method than GET (WebSocket, RFC 6455 §4.1) or POST (SPDY): a member would carry out a DELETE as
    /// one, and its success would read like a failure of the upgrade.
    pub async fn serve(
        self,
        call: Call<'_>,
        request: Request<RequestBody>,
        client: &mut Option<OnUpgrade>,
        record: &mut Record,
    ) -> Result<Response<ResponseBody>, Error> {
        if !matches!(*request.method(), Method::GET | Method::POST) {
            return Err(Error::BadRequest("an upgrade is asked for by GET or POST"));
        }
        let cluster = call.cluster.name().clone();
        let mut held = call.cluster.acquire().await.map_err(|error| Error::not_issued(&cluster, &error))?;
        let request = self.prepare(&call, &held, request)?;
        let again = attempt::keep(&held, call.asks, &request);
        let mut answer = workload::judge(ask(&call, &held, request).await?, call.asks).await;
        if answer.is_rejection
            && let Some((next, request)) = attempt::next(again, &call.cluster, &held).await?
        {
            drop(answer);
            held = next;
            answer = workload::judge(ask(&call, &held, request).await?, call.asks).await;
        }
        let Answer { response, is_rejection } = answer;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                let client = client.take().ok_or(Error::BadRequest("Upgrade request required"))?;
                Ok(relay::join(client, response, &call, record))
            }
            _ if is_rejection => Err(Error::rejected(&cluster, &held)),
            refused if refused.is_client_error() || refused.is_server_error() => {
                relay::refused(response).await.map_err(|reason| Error::UpgradeBroken { cluster, reason })
            }
            status => Err(Error::NoUpgrade { cluster, status }),
        }
    }

    /// The upgrade request as the member shall see it: `Connection` and `Upgrade` are built anew, the credential comes last.
    fn prepare(
        &self,
        call: &Call<'_>,
        held: &Held<'_>,
        request: Request<RequestBody>,
    ) -> Result<Request<RequestBody>, Error> {
        let (mut parts, body) = request.into_parts();
        let target = held.upstream().target();
        parts.uri = Uri::from(uri::rewrite(call.cluster.endpoint(), &parts.uri, call.remainder)?);
        parts.version = Version::HTTP_11;
        headers::to_member(&mut parts.headers, call.connection.address())
            .map_err(|_| Error::Loop(call.cluster.name().clone()))?;
        parts.headers.insert(http::header::HOST, target.host_header.clone());
        set_upgrade(&mut parts.headers, &self.protocol);
        credential::apply(call, held, &mut parts.headers)?;
        if parts.method == Method::POST && !parts.headers.contains_key(http::header::CONTENT_LENGTH) {
            parts.headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(Request::from_parts(parts, body))
    }
}

/// One attempt, on a connection of its own.
async fn ask(call: &Call<'_>, held: &Held<'_>, request: Request<RequestBody>) -> Result<Response<Incoming>, Error> {
    let cluster = || call.cluster.name().clone();
    size::of_request(&request)
        .map_err(|unfit| Error::Upstream { cluster: cluster(), error: SendError::Unfit(unfit) })?;
    let answer = match held.upstream().dial_upgrade().await {
        Ok(transport) => timeout(ANSWER_WITHIN, relay::ask(transport, request)).await,
        Err(error) => Ok(Err(SendError::Connect(Arc::new(error)))),
    };
    let Ok(answer) = answer else {
        let reason = format!("no answer to the upgrade request within {ANSWER_WITHIN:?}");
        return Err(Error::UpgradeBroken { cluster: cluster(), reason });
    };
    answer.map_err(|error| {
        attempt::suspect(&call.cluster, held, &error);
        Error::Upstream { cluster: cluster(), error }
    })
}

fn set_upgrade(headers: &mut HeaderMap, protocol: &[HeaderValue]) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    for value in protocol {
        headers.append(UPGRADE, value.clone());
    }
}

fn is_known(value: &HeaderValue) -> bool {
    let value = value.as_bytes().trim_ascii();
    value.eq_ignore_ascii_case(b"websocket") || value.eq_ignore_ascii_case(b"SPDY/3.1")
}
