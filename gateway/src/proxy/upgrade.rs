//! Upgrades (exec, attach, port-forward, WebSocket watches): each gets its own connection to the
//! member, and becomes a byte pipe after the member's 101.

mod relay;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use tokio::time::timeout;
use traces::Trace;

pub use self::relay::UpgradedPair;
use super::attempt::{self, Attempt};
use super::{Answer, Call};
use crate::body::ResponseBody;
use crate::clusters::CredentialLease;
use crate::error::{Cause, Error};
use crate::headers::size;
use crate::request::upgrade::Upgrade;
use crate::request_body::{BoxedRequest, RequestBody};
use crate::upstream::{HeldIncoming, SendError};

/// A member may need time to start a container's process before its response, but not forever.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);

struct Upgrading<'a> {
    call: &'a Call<'a>,
    upgrade: Upgrade,
}

/// Adds `Connection: close` to the response to an upgrade request, unless `client` was taken for an
/// upgrade: bytes of the other protocol may follow the request, and must not be parsed as the next
/// one.
pub fn or_close(client: Option<OnUpgrade>, response: &mut Response<ResponseBody>) {
    if let Some(client) = client {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        tokio::spawn(relay::close(client));
    }
}

/// Asks the member, and joins the two connections if it agrees. Takes `client` only then.
///
/// Clients upgrade with GET (WebSocket, RFC 6455 §4.1) or POST (SPDY) only. A member would carry
/// out a DELETE as such, and its success would look like a failed upgrade.
pub async fn serve(
    call: &Call<'_>,
    upgrade: Upgrade,
    request: BoxedRequest,
    client: &mut Option<OnUpgrade>,
) -> Result<Answer, Error> {
    if !matches!(*request.method(), Method::GET | Method::POST) {
        return Err(Error::BadRequest("an upgrade request must use GET or POST"));
    }
    let upgrading = Upgrading { call, upgrade };
    let (_, response) = attempt::answer(&upgrading, request).await?;
    let cluster = call.cluster.name();
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            let client = client.take().ok_or(Error::BadRequest("Upgrade request required"))?;
            Ok(relay::join(client, response, call))
        }
        refused if refused.is_client_error() || refused.is_server_error() => {
            let refusal = relay::refused(response, call.account()).await;
            refusal.map(Answer::from).map_err(|lost| Cause::UpgradeBroken(lost).at(cluster))
        }
        status => Err(Cause::NoUpgrade(status).at(cluster)),
    }
}

// === impl Upgrading ===

impl Attempt for Upgrading<'_> {
    type Body = HeldIncoming;

    fn call(&self) -> &Call<'_> {
        self.call
    }

    /// Builds new `Connection` and `Upgrade` headers, and sets the credential last.
    fn prepare(&self, lease: &CredentialLease<'_>, request: &mut Request<RequestBody>) -> Result<(), Error> {
        super::to_member(self.call, request)?;
        *request.version_mut() = Version::HTTP_11;
        let is_post = *request.method() == Method::POST;
        let headers = request.headers_mut();
        headers.insert(HOST, lease.upstream().target().host_header.clone());
        self.upgrade.write(headers);
        self.call.set_credential(lease, headers)?;
        if is_post && !headers.contains_key(CONTENT_LENGTH) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(())
    }

    /// Sends the request on its own connection.
    async fn send(
        &self,
        lease: &CredentialLease<'_>,
        request: BoxedRequest,
        trace: Option<&Trace>,
    ) -> Result<Response<HeldIncoming>, Error> {
        let cluster = self.call.cluster.name();
        size::of_request(&request).map_err(|unfit| Cause::Send(SendError::Unfit(unfit)).at(cluster))?;
        let held = lease.upstream().target().held(self.call.connection.core());
        let answer = match lease.upstream().dial_upgrade(&held, trace).await {
            Ok(transport) => timeout(ANSWER_WITHIN, relay::ask(transport, *request, &held, self.call.account())).await,
            Err(error) => Ok(Err(SendError::Connect(Arc::new(error)))),
        };
        let Ok(answer) = answer else {
            let reason = format!("no answer to the upgrade request within {ANSWER_WITHIN:?}");
            return Err(Cause::UpgradeBroken(reason.into()).at(cluster));
        };
        answer.map_err(|error| {
            attempt::suspect(&self.call.cluster, lease, &error);
            Cause::sending(error).at(cluster)
        })
    }
}
