//! Checks each cluster through the gateway.

use api::cluster_name::ClusterName;
use fleet::Failure;

use super::unseen;
use crate::expiry::now;
use crate::findings::{self, Finding};
use crate::hops::{self, Hop};
use crate::look::{agents, registered, version};
use crate::progress::Line;
use crate::reach::{is_refused_by_hub, whoami};
use crate::row::{Facts, Row};
use crate::session::Session;
use crate::trouble::Result;

/// Findings about each cluster: whether it answers and accepts the credential, and for how long it
/// will.
pub async fn look(session: &Session, name: Option<&ClusterName>) -> Result<Vec<Finding>> {
    let (all, known) = tokio::join!(session.fleet.clusters(""), registered(session, ""));
    let known = &known.unwrap_or_default();
    let mut all = match all {
        Ok(all) => all,
        Err(failure) => return Ok(vec![unseen("the clusters", &failure.into())]),
    };
    all.retain(|cluster| name.is_none_or(|name| *name == cluster.name));
    all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    if all.is_empty() {
        return Ok(vec![absent(name)]);
    }
    let names: Vec<_> = all.iter().map(|cluster| cluster.name.clone()).collect();
    let asked = session.fleet.each(names, session.limits(), |name, client| async move {
        let answer = version(&client).await?;
        match whoami(session, &name).await {
            Err(failure) if is_refused_by_hub(&failure) => {} // it answers; the person may only read
            asked => drop(asked?),
        }
        Ok::<_, Failure>((answer, agents(&client, &name, known.get(name.as_str())).await))
    });
    let mut line = Line::new("checked");
    let outcomes = asked.in_order(|progress, event| line.tell(progress, event)).await;
    let found = all.into_iter().zip(outcomes).flat_map(|(cluster, outcome)| {
        let name = cluster.name.to_string();
        let remedy = outcome.result.as_ref().err().map(|failure| {
            format!(
                "{}; `kubectl clusters probe {name}` gives more details",
                hops::remedy(Hop::admitted(failure), failure, &name)
            )
        });
        let remedy = remedy.unwrap_or_default();
        let insecure = cluster.insecure;
        let agents = outcome.result.as_ref().ok().and_then(|(_, agents)| *agents);
        let answer = Some(outcome.result.map(|(answer, _)| answer));
        let facts = Facts { registered: known.get(&name).cloned(), cluster, answer, agents };
        findings::cluster(&Row::new(&facts, now()), insecure, &remedy, now())
    });
    Ok(found.collect())
}

/// The finding when the gateway has no such cluster, or none at all.
fn absent(name: Option<&ClusterName>) -> Finding {
    match name {
        Some(name) => Finding::bad(
            format!("{name} is not registered, or the gateway cannot use its Secret"),
            format!("`kubectl get clustergateway {name}` gives the reason"),
        ),
        None => Finding::warning("none is registered", "register one: `kubectl clusters join`"),
    }
}
