//! Inspects one cluster: the way to it, its traffic, and the links of its agents.

use std::time::Duration;

use api::cluster_name::ClusterName;
use api::side::Side;
use api::traffic::{ClusterTraffic, Traffic};
use api::{GROUP, VERSION};
use fleet::{EndpointType, Failure};
use tokio::time::timeout;

use super::links::{self, Links};
use crate::hops::Hop;
use crate::session::{self, Session};
use crate::trouble::{self, Trouble};
use crate::walk::{self, End, Step};

/// Time for one look at a cluster, so that the page of a cluster that hangs says so soon.
const LOOK: Duration = Duration::from_secs(12);

/// What was seen.
pub struct Inspection {
    pub steps: Vec<Step>,
    /// Where the way failed, if it did.
    pub end: Option<End>,
    pub traffic: Result<Traffic, Trouble>,
    /// `None`: it is not behind the tunnel, as far as is known.
    pub links: Option<Result<Vec<Links>, Trouble>>,
}

/// Asks hub, gateway, tunnel-servers and member, each within the time for one look. What is slow is
/// not shown, but does not keep the rest from being shown.
pub async fn inspect(session: &Session, cluster: &ClusterName, is_tunnelled: bool) -> Inspection {
    let mut steps = Vec::new();
    let links = async {
        let links = is_tunnelled.then(|| links::of(session, cluster))?;
        Some(timeout(LOOK, links).await.unwrap_or_else(|_| Err(Trouble::late(LOOK))))
    };
    let way = timeout(LOOK, walk::walk(session, cluster, &mut steps));
    let traffic = timeout(LOOK, traffic(session, cluster));
    let (way, traffic, links) = tokio::join!(way, traffic, links);
    let end = way.unwrap_or_else(|_| Err(slow(&steps, is_tunnelled))).err();
    Inspection { steps, end, traffic: traffic.unwrap_or_else(|_| Err(Trouble::late(LOOK))), links }
}

/// The way fails at the hop after those that were passed in time.
fn slow(steps: &[Step], is_tunnelled: bool) -> End {
    let passed = steps.last().map(|step| step.hop);
    let hop = hops(is_tunnelled).into_iter().find(|hop| Some(*hop) > passed).unwrap_or(Hop::Credential);
    End { hop, failure: Failure::late(LOOK) }
}

/// Hops of a way that has not been checked yet.
pub fn hops(is_tunnelled: bool) -> Vec<Hop> {
    Hop::to(is_tunnelled.then_some(&EndpointType::ClusterProxy))
}

async fn traffic(session: &Session, cluster: &ClusterName) -> Result<Traffic, Trouble> {
    let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{cluster}/traffic");
    let asked = session::get(session.hub(), &path, session::JSON);
    let body = session.bounded(asked).await.map_err(|failure| trouble_of(&failure, cluster))?;
    let told = serde_json::from_slice::<ClusterTraffic>(&body);
    let mistake = |error| Trouble::failed(format!("the gateway's counters cannot be read: {error}"), "");
    told.map(|told| told.status).map_err(mistake)
}

fn trouble_of(failure: &Failure, cluster: &ClusterName) -> Trouble {
    use fleet::Kind::{Answered, Plain};
    let remedy = match failure.kind {
        Answered(403) => format!(
            "ask the hub's administrator for the verb get on clustergateways/traffic.{GROUP}, for {cluster} or for all"
        ),
        Answered(404) | Plain(404) if failure.side != Some(Side::Caller) => {
            "upgrade the gateway: older versions and the Go cluster-gateway do not serve their counters".to_owned()
        }
        _ => trouble::remedy(failure),
    };
    Trouble::failed(trouble::cause(failure), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Mark;

    #[test]
    fn a_way_that_takes_too_long_ends_behind_what_was_passed() {
        let passed = |hop| Step { mark: Mark::Good, hop, took: None, told: String::new() };
        assert_eq!(slow(&[], true).hop, Hop::Hub);
        let registered = [passed(Hop::Hub), passed(Hop::Gateway), passed(Hop::Registration)];
        assert_eq!((slow(&registered, true).hop, slow(&registered, false).hop), (Hop::TunnelServer, Hop::Member));
    }

    #[test]
    fn a_cluster_that_is_not_there_is_no_old_gateway() {
        let name = ClusterName::parse("berlin").unwrap();
        let missing = |side| Failure { side, kind: fleet::Kind::Answered(404), ..Failure::own("no") };
        assert!(trouble_of(&missing(None), &name).remedy.contains("upgrade the gateway"));
        assert!(trouble_of(&missing(Some(Side::Caller)), &name).remedy.contains("registered names"));
    }
}
