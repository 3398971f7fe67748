//! The time that each hop of the tunnel took, measured by the gateway when it last opened a stream.

use std::time::Duration;

use api::cluster_name::ClusterName;
use api::traffic::{ClusterTraffic, TunnelHop, TunnelOpen};
use api::{GROUP, VERSION};
use fleet::{Failure, Kind};

use crate::expiry::now;
use crate::hops::Hop;
use crate::session::{self, Session};
use crate::span;

/// Text for a hop without further details.
const PASSED: &str = "passed";
/// Outcome of a hop that opened the stream.
const OPENED: &str = "opened";
/// Refusals that come only from tunnel-servers, without an agent (`docs/protocol.md`). `limit` is
/// not among them, because agents answer it too.
const OF_SERVERS: [&str; 3] = ["no-link", "unknown-cluster", "draining"];

/// The gateway's last stream through the tunnel to one cluster.
pub enum Crossing {
    /// It was not measured, or the user may not see it. The text says so.
    Untimed(&'static str),
    /// The hop that the gateway asked last, and how long ago that was, in seconds.
    Timed { hop: TunnelHop, ago: i64 },
}

// === impl Crossing ===

impl Crossing {
    /// As known to the gateway's replica that the hub asks. Most often, the hub asked the same one
    /// before.
    pub async fn last(session: &Session, name: &ClusterName) -> Self {
        let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{name}/traffic");
        match session.bounded(session::get(session.hub(), &path, session::JSON)).await {
            Ok(body) => {
                let told = serde_json::from_slice::<ClusterTraffic>(&body).ok();
                Self::of(told.and_then(|told| told.status.tunnel_open))
            }
            Err(Failure { kind: Kind::Answered(403), .. }) => {
                Self::Untimed("passed; to see its time you need the verb get on clustergateways/traffic")
            }
            Err(_) => Self::Untimed("passed; the gateway does not report its time"),
        }
    }

    fn of(open: Option<TunnelOpen>) -> Self {
        let Some(TunnelOpen { time, mut hops, .. }) = open else { return Self::Untimed(PASSED) };
        let ago = (now() - time / 1000).max(0);
        hops.pop().map_or(Self::Untimed(PASSED), |hop| Self::Timed { hop, ago })
    }

    /// The time of the hop itself, without the hops behind it, and what is known of it.
    pub fn step(&self, hop: Hop) -> (Option<Duration>, String) {
        match self {
            Self::Untimed(told) => (None, (*told).to_owned()),
            Self::Timed { hop: timed, ago } if hop == Hop::TunnelServer => server(timed, *ago),
            Self::Timed { hop: timed, .. } => agent(timed),
        }
    }
}

/// To the tunnel-server and back.
fn server(hop: &TunnelHop, ago: i64) -> (Option<Duration>, String) {
    if hop.server.is_empty() {
        return (None, "the gateway itself".to_owned());
    }
    let told = format!("{}, last asked {} ago", hop.server, span::rough(ago));
    let took = Duration::from_micros(hop.took_micros);
    match (&*hop.outcome, hop.agent_micros) {
        (OPENED, Some(agent)) => (Some(took.saturating_sub(Duration::from_micros(agent))), told),
        (OPENED, None) => (Some(took), format!("{told}; it does not report its agent's time: that is included")),
        (refusal, _) if OF_SERVERS.contains(&refusal) => (Some(took), told),
        _ => (None, PASSED.to_owned()),
    }
}

/// From the tunnel-server to the agent and back.
fn agent(hop: &TunnelHop) -> (Option<Duration>, String) {
    let whole = if hop.server.is_empty() { Some(hop.took_micros) } else { hop.agent_micros };
    let Some(whole) = whole.filter(|_| hop.outcome == OPENED).map(Duration::from_micros) else {
        return (None, PASSED.to_owned());
    };
    match hop.dial_micros.map(Duration::from_micros) {
        Some(dial) => {
            (Some(whole.saturating_sub(dial)), format!("connected to its API server in {}", span::took(dial)))
        }
        None => (Some(whole), "includes its connection to its API server".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(hop: TunnelHop) -> [(Option<u64>, String); 2] {
        let time = (now() - 12) * 1000;
        let crossing = Crossing::of(Some(TunnelOpen { time, hops: vec![TunnelHop::default(), hop], took_micros: 9 }));
        [Hop::TunnelServer, Hop::TunnelAgent].map(|hop| {
            let (took, told) = crossing.step(hop);
            (took.map(|took| u64::try_from(took.as_micros()).unwrap()), told)
        })
    }

    fn opened(agent_micros: Option<u64>, dial_micros: Option<u64>) -> TunnelHop {
        let (server, outcome) = ("10.0.0.3:8090".to_owned(), OPENED.to_owned());
        TunnelHop { server, outcome, took_micros: 5_000, agent_micros, dial_micros, ..TunnelHop::default() }
    }

    #[test]
    fn each_hop_has_its_own_share() {
        let [server, agent] = steps(opened(Some(3_000), Some(400)));
        assert_eq!(server.0, Some(2_000));
        assert!(server.1.starts_with("10.0.0.3:8090, last asked 1"), "{server:?}");
        assert_eq!(agent, (Some(2_600), "connected to its API server in 0.4ms".to_owned()));
        let [server, agent] = steps(TunnelHop { server: String::new(), ..opened(None, Some(400)) });
        assert_eq!(server, (None, "the gateway itself".to_owned()));
        assert_eq!(agent.0, Some(4_600));
    }

    #[test]
    fn an_older_hop_is_one_with_those_behind_it() {
        let [server, agent] = steps(opened(None, None));
        assert!(server.0 == Some(5_000) && server.1.contains("that is included"), "{server:?}");
        assert_eq!(agent, (None, PASSED.to_owned()));
        let [server, agent] = steps(opened(Some(3_000), None));
        assert_eq!((server.0, agent.0), (Some(2_000), Some(3_000)));
        assert!(agent.1.contains("includes its connection"), "{agent:?}");
    }

    #[test]
    fn what_was_not_opened_tells_of_the_server_alone() {
        let refused = |outcome: &str| steps(TunnelHop { outcome: outcome.to_owned(), ..opened(None, None) });
        assert_eq!(refused("no-link").map(|step| step.0), [Some(5_000), None]);
        for of_either in ["unreachable", "limit"] {
            assert_eq!(refused(of_either).map(|step| step.0), [None, None], "{of_either}");
        }
        // No share is larger than the whole, whatever other programs report.
        assert_eq!(steps(opened(Some(9_000), Some(99_000))).map(|step| step.0), [Some(0), Some(0)]);
        let (took, told) = Crossing::of(None).step(Hop::TunnelServer);
        assert_eq!((took, &*told), (None, PASSED));
    }
}
