//! One cluster, looked at from all sides.

use api::cluster_name::ClusterName;
use api::traffic::{ClusterTraffic, Traffic};
use api::{GROUP, VERSION};
use fleet::{EndpointType, Failure};

use super::links::{self, Links};
use crate::hops::Hop;
use crate::session::{self, Session};
use crate::trouble::{self, Trouble};
use crate::walk::{self, End, Step};

/// What was seen.
pub struct Inspection {
    pub steps: Vec<Step>,
    /// Where the way ended, if it did.
    pub end: Option<End>,
    pub traffic: Result<Traffic, Trouble>,
    /// `None`: it is not behind the tunnel, as far as is known.
    pub links: Option<Result<Vec<Links>, Trouble>>,
}

/// Asks hub, gateway, tunnel-servers and member. Everything is bounded by the time for a request.
pub async fn inspect(session: &Session, cluster: &ClusterName, is_tunnelled: bool) -> Inspection {
    let mut steps = Vec::new();
    let links = async { if is_tunnelled { Some(links::of(session, cluster).await) } else { None } };
    let (end, traffic, links) =
        tokio::join!(walk::walk(session, cluster, &mut steps), traffic(session, cluster), links);
    Inspection { steps, end: end.err(), traffic, links }
}

/// Hops of a way that has not been walked yet.
pub fn hops(is_tunnelled: bool) -> Vec<Hop> {
    Hop::to(is_tunnelled.then_some(&EndpointType::ClusterProxy))
}

async fn traffic(session: &Session, cluster: &ClusterName) -> Result<Traffic, Trouble> {
    let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{cluster}/traffic");
    let asked = session::get(session.hub(), &path, session::JSON);
    let body = walk::bounded(session, asked).await.map_err(|failure| untold(&failure, cluster))?;
    let told = serde_json::from_slice::<ClusterTraffic>(&body);
    let mistake = |error| Trouble::failed(format!("the gateway's counts cannot be read: {error}"), "");
    told.map(|told| told.status).map_err(mistake)
}

fn untold(failure: &Failure, cluster: &ClusterName) -> Trouble {
    use fleet::Kind::{Answered, Plain};
    let remedy = match failure.kind {
        Answered(403) => format!(
            "ask the hub's administrator for the verb get on clustergateways/traffic.{GROUP}, for {cluster} or for all"
        ),
        Answered(404) | Plain(404) => "upgrade the gateway: this one does not count for others".to_owned(),
        _ => trouble::remedy(failure),
    };
    Trouble::failed(trouble::cause(failure), remedy)
}
