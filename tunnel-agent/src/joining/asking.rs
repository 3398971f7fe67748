//! Requests for certificates: creates them, checks their progress, and takes certificates over.
//!
//! A request's key and name are saved before the request is sent to the hub. Whether or not the
//! answer arrives, that name finds the request again, and no second one is created.

use std::time::SystemTime;

use api::ocm_agent::{CLUSTER_LABEL, OcmAgent};
use http::StatusCode;
use hub::{Cause, Requests};
use net::random::identifier;

use super::certificate::{Certificate, Useless};
use super::dialer::HubWay;
use super::request::{self, MOST_OUTSTANDING, Pending, Progress, REQUESTS};
use super::{JoinError, Joining};

/// The request that waits for its certificate, or a new one with a new key.
pub fn pending(joining: &Joining, agent: &OcmAgent) -> Result<Pending, JoinError> {
    if let Some(pending) = joining.state.request()? {
        return Ok(pending);
    }
    let pending = Pending { name: format!("{}-{}", agent.cluster, identifier()), key: request::new_key()? };
    joining.state.remember_request(&pending)?;
    Ok(pending)
}

/// Creates the request on the hub. If it exists already, the next look reads it.
pub async fn ask(hub: &Requests, agent: &OcmAgent, pending: &Pending) -> Result<(), JoinError> {
    let document = request::document(agent, pending)?;
    match hub.create(REQUESTS, &document).await {
        Ok(_) => tracing::info!(request = pending.name, "asked the hub for a certificate"),
        Err(error) if error.is(StatusCode::CONFLICT) => {}
        Err(error) => return Err(JoinError::hub("creating a certificate request")(error)),
    }
    Ok(())
}

/// The progress of a request. None if it is not on the hub.
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

/// Whether one more request may be created. Any requester may label requests with this cluster's
/// name, so renewals, which are approved at once, do not depend on this check.
pub async fn check_outstanding(hub: &Requests, cluster: &str) -> Result<(), JoinError> {
    let own = format!("{REQUESTS}?labelSelector={CLUSTER_LABEL}%3D{cluster}");
    let known = hub.get(&own).await.map_err(JoinError::hub("listing certificate requests"))?;
    let outstanding = request::outstanding(&known);
    if outstanding >= MOST_OUTSTANDING { Err(JoinError::Outstanding(outstanding)) } else { Ok(()) }
}

/// Takes a certificate over, if it is usable. Otherwise it is forgotten, together with its request.
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
    pub fn hub(what: &'static str) -> impl FnOnce(Cause) -> Self {
        move |error| Self::Hub { what, error }
    }
}

impl From<Useless> for JoinError {
    fn from(useless: Useless) -> Self {
        Self::Useless(useless)
    }
}
