//! Checks the way to one cluster, hop by hop.

use std::time::Duration;

use api::cluster_name::ClusterName;
use api::{GROUP, VERSION};
use fleet::{EndpointType, Failure, Kind};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::crossing::Crossing;
use crate::expiry::{self, Expiry, now};
use crate::findings::Mark;
use crate::hops::Hop;
use crate::look::version;
use crate::reach::{GatewayUser, is_refused_by_hub, whoami};
use crate::registration::Registrations;
use crate::session::{self, Session};
use crate::trouble::is_without_gateway;

/// What is known of a hop.
pub struct Step {
    pub mark: Mark,
    pub hop: Hop,
    pub took: Option<Duration>,
    pub told: String,
}

/// The hop at which the way ended, and why.
pub struct End {
    pub hop: Hop,
    pub failure: Failure,
}

/// Text for a person that may only read.
const UNASKED: &str = "user unknown: that needs the verb create on clustergateways/proxy";
/// Text for a hub on which no gateway is installed.
const ABSENT: &str = "this hub has no gateway";

#[derive(Deserialize, Default)]
struct Object {
    #[serde(default)]
    spec: Value,
}

/// Checks each hop in turn. When a request fails at a hop, the hops before it have worked.
pub async fn walk(session: &Session, name: &ClusterName, steps: &mut Vec<Step>) -> Result<(), End> {
    let mut good = |hop, took, told: String| steps.push(Step { mark: Mark::Good, hop, took, told });
    let at = |hop| move |failure| End { hop, failure };
    let (told, took) = session.bounded(version(session.hub())).await.map_err(at(Hop::Hub))?;
    good(Hop::Hub, Some(took), format!("Kubernetes {told}"));
    let took = gateway(session).await.map_err(at(Hop::Gateway))?;
    good(Hop::Gateway, Some(took), "the hub's aggregator reaches it".to_owned());
    let (kind, told) = registered(session, name).await.map_err(|failure| End { hop: unread(&failure), failure })?;
    let client = session.fleet.client(name);
    let answer = session.bounded(version(&client)).await;
    let passed = match &answer {
        Ok(_) => Hop::Member,
        Err(failure) => Hop::admitted(failure),
    };
    if passed != Hop::Registration {
        good(Hop::Registration, None, told);
    }
    let mut tunnel = Hop::to(kind.as_ref());
    tunnel.retain(|hop| (Hop::TunnelServer..Hop::Member).contains(hop) && *hop < passed);
    if !tunnel.is_empty() {
        let crossing = Crossing::last(session, name).await;
        for hop in tunnel {
            let (took, told) = crossing.step(hop);
            good(hop, took, told);
        }
    }
    let (told, took) = answer.map_err(at(passed))?;
    good(Hop::Member, Some(took), format!("Kubernetes {told}"));
    let (mark, took, told) = match whoami(session, name).await {
        Ok(GatewayUser { user, took }) => {
            (Mark::Good, Some(took), format!("accepted, as {user}{}", ends(session, name).await))
        }
        Err(failure) if is_refused_by_hub(&failure) => (Mark::Warning, None, UNASKED.to_owned()),
        Err(failure) => return Err(End { hop: Hop::admitted(&failure).max(Hop::Member), failure }),
    };
    steps.push(Step { mark, hop: Hop::Credential, took, told });
    Ok(())
}

/// The hop that failed, if the gateway does not describe the cluster. The Go cluster-gateway
/// responds with 404 about the Secret, and names no side.
fn unread(failure: &Failure) -> Hop {
    match failure.kind {
        Kind::Answered(404) => Hop::Registration,
        _ => Hop::of(failure),
    }
}

async fn gateway(session: &Session) -> Result<Duration, Failure> {
    let (start, path) = (Instant::now(), format!("/apis/{GROUP}/{VERSION}"));
    session.bounded(session::get(session.hub(), &path, session::JSON)).await.map_err(|failure| {
        let message = if is_without_gateway(&failure) { ABSENT.to_owned() } else { failure.message.clone() };
        Failure { message, ..failure }
    })?;
    Ok(start.elapsed())
}

/// How the cluster is reached, as far as the person may know.
async fn registered(session: &Session, name: &ClusterName) -> Result<(Option<EndpointType>, String), Failure> {
    let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{name}");
    let body = match session.bounded(session::get(session.hub(), &path, session::JSON)).await {
        Ok(body) => body,
        // The right to use a cluster is separate from the right to see it.
        Err(failure) if failure.kind == Kind::Answered(403) => {
            return Ok((None, "unknown: you may not get clustergateways".to_owned()));
        }
        Err(failure) => return Err(failure),
    };
    let object: Object = serde_json::from_slice(&body).unwrap_or_default();
    let access = &object.spec["access"];
    let kind = access["endpoint"]["type"].as_str().unwrap_or_default();
    let place = access["endpoint"]["const"]["address"].as_str().unwrap_or("through its agents");
    let told = format!("{place}, {}", access["credential"]["type"].as_str().unwrap_or("no credential"));
    Ok((Some(EndpointType::of(kind.to_owned())), told))
}

/// When the credential expires, if the person may read it.
async fn ends(session: &Session, name: &ClusterName) -> String {
    let secret = async { Registrations::of(session).await?.get(name).await }.await;
    let expiry = secret.map_or(Expiry::Unknown, |secret| expiry::registered(&secret.data.unwrap_or_default()));
    match expiry {
        Expiry::Unknown => String::new(),
        Expiry::Never => "; it does not expire".to_owned(),
        Expiry::At(_) => format!("; {} left", expiry::left(expiry, now())),
    }
}
