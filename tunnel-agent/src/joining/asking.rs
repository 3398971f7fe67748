//! Requests for certificates, as they are made, looked at and taken over.
//!
//! A request's key and name are kept before the hub hears of it. Whether or not its answer arrives,
//! the request is found again by that name, and no second one is made.

use std::time::SystemTime;

use api::ocm_agent::{CLUSTER_LABEL, OcmAgent};
use http::StatusCode;
use hub::{RequestError, Requests};
use net::random::identifier;

use super::certificate::{Certificate, Useless};
use super::request::{self, MOST_OUTSTANDING, Pending, Progress, REQUESTS};
use super::way::HubWay;
use super::{JoinError, Joining};

/// The request that waits for its certificate, or a new one, for a new key.
pub fn pending(joining: &Joining, agent: &OcmAgent) -> Result<Pending, JoinError> {
    if let Some(pending) = joining.state.request()? {
        return Ok(pending);
    }
    let pending = Pending { name: format!("{}-{}", agent.cluster, identifier()), key: request::new_key()? };
    joining.state.remember_request(&pending)?;
    Ok(pending)
}

/// Makes the request on the hub. One that is there already is looked at next.
pub async fn ask(hub: &Requests, agent: &OcmAgent, pending: &Pending) -> Result<(), JoinError> {
    let document = request::document(agent, pending)?;
    match hub.create(REQUESTS, &document).await {
        Ok(_) => tracing::info!(request = pending.name, "asked the hub for a certificate"),
        Err(error) if error.is(StatusCode::CONFLICT) => {}
        Err(error) => return Err(JoinError::hub("creating a certificate request")(error)),
    }
    Ok(())
}

/// What has become of a request. None: it is not on the hub.
pub async fn look(joining: &Joining, hub: &Requests, pending: &Pending) -> Result<Option<Progress>, JoinError> {
    match hub.get(&format!("{REQUESTS}/{}", pending.name)).await {
        Ok(request) if request::is_for(&request, &pending.key) => Ok(Some(Progress::of(&request))),
        Ok(_) => {
            joining.state.forget_request()?;
            Err(JoinError::Taken(pending.name.clone()))
        }
        Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(None),
        Err(error) => Err(JoinError::hub("reading the certificate request")(error)),
    }
}

/// Whether there may be one more. Any requester may label requests with this cluster's name:
/// renewals are approved at once, and wait for no others.
pub async fn check_outstanding(hub: &Requests, cluster: &str) -> Result<(), JoinError> {
    let own = format!("{REQUESTS}?labelSelector={CLUSTER_LABEL}%3D{cluster}");
    let known = hub.get(&own).await.map_err(JoinError::hub("listing certificate requests"))?;
    let outstanding = request::outstanding(&known);
    if outstanding >= MOST_OUTSTANDING { Err(JoinError::Outstanding(outstanding)) } else { Ok(()) }
}

/// Takes a certificate over, if it can be used. One that cannot is forgotten, with its request.
pub fn take(
    joining: &Joining,
    pending: &Pending,
    pem: &[u8],
    agent: &OcmAgent,
    hub: &HubWay,
) -> Result<Certificate, JoinError> {
    let usable = Certificate::parse(pem).and_then(|certificate| {
        certificate.check(agent, request::public_key(&pending.key).as_deref(), SystemTime::now())?;
        Ok(certificate)
    });
    match usable {
        Ok(certificate) => {
            joining.state.take(pending, pem, hub)?;
            Ok(certificate)
        }
        Err(useless) => {
            joining.state.forget_request()?;
            Err(JoinError::Useless(useless))
        }
    }
}

// === impl JoinError ===

impl JoinError {
    pub fn hub(what: &'static str) -> impl FnOnce(RequestError) -> Self {
        move |error| Self::Hub { what, error }
    }
}

impl From<Useless> for JoinError {
    fn from(useless: Useless) -> Self {
        Self::Useless(useless)
    }
}
