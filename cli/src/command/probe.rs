//! `probe`: each hop to a cluster in turn, and the one that fails.

use std::process::ExitCode;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::{GROUP, VERSION};
use fleet::{EndpointType, Failure, Kind};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::list::version;
use crate::expiry::{Expiry, now};
use crate::hops::Hop;
use crate::mark::Mark;
use crate::reach::{Seen, whoami};
use crate::registration::Registrations;
use crate::session::{self, Session};
use crate::trouble::{self, Exit, Result};
use crate::{hops, output, selection, span, text_table};

/// Asks the hub, the gateway and the member in turn, and says where the way ends. Times are of
/// whole requests from here: each includes the hops before it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kubectl clusters probe berlin")]
pub struct Probe {
    /// The cluster
    name: String,
}

/// What is known of a hop.
struct Step {
    mark: Mark,
    hop: Hop,
    took: Option<Duration>,
    told: String,
}

/// Where the way ended.
struct End {
    hop: Hop,
    failure: Failure,
}

#[derive(Deserialize, Default)]
struct Object {
    #[serde(default)]
    spec: Value,
}

// === impl Probe ===

impl Probe {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let name = selection::name(&self.name)?;
        let mut steps = Vec::new();
        let end = walk(session, &name, &mut steps).await.err();
        show(&steps, end.as_ref());
        let Some(End { hop, failure }) = end else {
            output::print(&format!("cluster {name} answers\n"))?;
            return Ok(ExitCode::SUCCESS);
        };
        output::say(&format!("error: the way to {name} ends at the {}: {}", hop.name(), trouble::cause(&failure)));
        output::say(&format!("remedy: {}", hops::remedy(&failure, name.as_str())));
        Ok(ExitCode::from(if hop == Hop::Hub { Exit::Hub } else { Exit::Failed } as u8))
    }
}

/// Each hop in turn. On the way of one request, the hops before the one that fails have worked.
async fn walk(session: &Session, name: &ClusterName, steps: &mut Vec<Step>) -> std::result::Result<(), End> {
    let mut good = |hop, took, told: String| steps.push(Step { mark: Mark::Good, hop, took, told });
    let at = |hop| move |failure| End { hop, failure };
    let (told, took) = bounded(session, version(session.hub())).await.map_err(at(Hop::Hub))?;
    good(Hop::Hub, Some(took), format!("Kubernetes {told}"));
    let took = gateway(session).await.map_err(at(Hop::Gateway))?;
    good(Hop::Gateway, Some(took), "the hub's aggregator reaches it".to_owned());
    let (kind, told) = registered(session, name).await.map_err(|failure| End { hop: Hop::of(&failure), failure })?;
    good(Hop::Registration, None, told);
    let client = session.fleet.client(name);
    let answer = bounded(session, version(&client)).await;
    let passed = match &answer {
        Ok(_) => Hop::Member,
        Err(failure) => Hop::of(failure),
    };
    for hop in
        Hop::to(kind.as_ref()).into_iter().filter(|hop| (Hop::TunnelServer..Hop::Member).contains(hop) && *hop < passed)
    {
        good(hop, None, "passed".to_owned());
    }
    let (told, took) = answer.map_err(at(passed))?;
    good(Hop::Member, Some(took), format!("Kubernetes {told}"));
    let Seen { user, took } =
        whoami(session, name).await.map_err(|failure| End { hop: Hop::of(&failure).max(Hop::Member), failure })?;
    good(Hop::Credential, Some(took), format!("accepted, as {user}{}", ends(session, name).await));
    Ok(())
}

async fn gateway(session: &Session) -> std::result::Result<Duration, Failure> {
    let start = Instant::now();
    bounded(session, session::get(session.hub(), &format!("/apis/{GROUP}/{VERSION}"), session::JSON)).await?;
    Ok(start.elapsed())
}

/// How the cluster is reached, as far as the person may know.
async fn registered(
    session: &Session,
    name: &ClusterName,
) -> std::result::Result<(Option<EndpointType>, String), Failure> {
    let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{name}");
    let body = match bounded(session, session::get(session.hub(), &path, session::JSON)).await {
        Ok(body) => body,
        // The right to use it is another one than the right to see it.
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

/// When the credential ends, if the person may read it.
async fn ends(session: &Session, name: &ClusterName) -> String {
    let secret = async { Registrations::of(session).await?.get(name).await }.await;
    let expiry = secret.map_or(Expiry::Unknown, |secret| Expiry::of(&secret.data.unwrap_or_default()));
    match expiry {
        Expiry::Unknown => String::new(),
        Expiry::Never => "; it does not expire".to_owned(),
        Expiry::At(_) => format!("; {} left", expiry.left(now())),
    }
}

async fn bounded<T>(
    session: &Session,
    asked: impl Future<Output = std::result::Result<T, Failure>>,
) -> std::result::Result<T, Failure> {
    let within = session.options.request_timeout;
    timeout(within, asked).await.unwrap_or_else(|_| {
        Err(Failure { kind: Kind::Late, ..Failure::own(format!("no answer within {}", span::took(within))) })
    })
}

fn show(steps: &[Step], end: Option<&End>) {
    let coloured = output::is_coloured();
    let failed =
        end.map(|end| Step { mark: Mark::Bad, hop: end.hop, took: None, told: "the way ends here".to_owned() });
    let rows: Vec<_> = steps
        .iter()
        .chain(&failed)
        .map(|step| {
            let took = step.took.map_or_else(|| "-".to_owned(), span::took);
            vec![format!("{} {}", step.mark.sign(coloured), step.hop.name()), took, text_table::tame(&step.told)]
        })
        .collect();
    drop(output::print(&text_table::lay_out(&["HOP", "TIME", "WHAT"], &rows)));
}
