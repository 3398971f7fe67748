//! Why no replica has a link of the cluster.

use std::fmt;

use net::dial::DialError;
use tunnel::{Reason, Refusal};

use super::Unreachable;

/// The servers that were asked in vain, and could have had the cluster.
#[derive(Debug, Default)]
pub struct Missing {
    /// This process, if agents may link to it.
    pub(super) here: Option<Refusal>,
    pub(super) refused: Vec<Refusal>,
    pub(super) unreachable: Vec<Unreachable>,
    /// Why names could not be resolved.
    pub(super) nowhere: Vec<DialError>,
    /// The cluster was reached a moment ago.
    pub(super) was_reached: bool,
}

// === impl Missing ===

impl Missing {
    /// Of a cluster that was reached a moment ago, or was not.
    pub fn of(was_reached: bool) -> Self {
        Self { was_reached, ..Self::default() }
    }

    pub fn refused_here(&mut self, refusal: Refusal) {
        self.here = Some(refusal);
    }

    pub fn refused(&mut self, refusal: Refusal) {
        self.refused.push(refusal);
    }

    pub fn unreachable(&mut self, unreachable: Unreachable) {
        self.unreachable.push(unreachable);
    }

    pub fn nowhere(&mut self, why: DialError) {
        self.nowhere.push(why);
    }

    /// The most informative refusal: a hop without room has the cluster.
    pub(super) fn foremost(&self) -> Option<&Refusal> {
        let of = |reason| move |refusal: &&Refusal| refusal.reason == reason;
        let all = || self.refused.iter().chain(&self.here);
        all().find(of(Reason::Limit)).or_else(|| all().find(of(Reason::Draining))).or_else(|| all().next())
    }

    fn asked(&self) -> usize {
        self.refused.len() + usize::from(self.here.is_some())
    }

    pub(super) fn is_timeout(&self) -> bool {
        self.asked() == 0
            && self.nowhere.is_empty()
            && !self.unreachable.is_empty()
            && self.unreachable.iter().all(Unreachable::is_timeout)
    }

    /// The servers without a link of the agent.
    fn whom(&self) -> String {
        let here = self.here.as_ref().map(|_| "this gateway".to_owned());
        let servers = match self.refused.len() {
            0 => None,
            1 if self.unreachable.is_empty() => Some("the tunnel-server".to_owned()),
            1 => Some("the one tunnel-server that could be asked".to_owned()),
            many if self.unreachable.is_empty() => Some(format!("any of the {many} tunnel-servers")),
            many => Some(format!("any of the {many} tunnel-servers that could be asked")),
        };
        here.into_iter().chain(servers).collect::<Vec<_>>().join(" or ")
    }

    fn failures(&self) -> String {
        let unreachable = self.unreachable.iter().map(ToString::to_string);
        self.nowhere.iter().map(ToString::to_string).chain(unreachable).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.foremost() {
            Some(refusal) if refusal.reason == Reason::Limit => {
                write!(f, "the tunnel-{} accepts no more streams: {refusal}; retry shortly", refusal.hop)
            }
            Some(refusal) if refusal.reason == Reason::Draining => {
                write!(f, "the tunnel-{} is shutting down: {refusal}; retry shortly", refusal.hop)
            }
            Some(_) => {
                write!(f, "no tunnel-agent of the cluster is linked to {}", self.whom())?;
                let failures = self.failures();
                if !failures.is_empty() {
                    write!(f, " ({failures})")?;
                }
                f.write_str(": check that the tunnel-agent runs in that cluster, and its log")
            }
            None if self
                .unreachable
                .iter()
                .any(|unreachable| matches!(unreachable, Unreachable::Silent { linked: true, .. })) =>
            {
                write!(f, "no answer in time: {}: ", self.failures())?;
                f.write_str("check the tunnel-server's log for a slow tunnel-agent or API server of the cluster")
            }
            None => {
                write!(f, "the gateway cannot reach any tunnel-server: {}: ", self.failures())?;
                f.write_str(
                    "check --proxy-host, --proxy-port, --proxy-ca-cert and --proxy-cert, and that tunnel-servers run there",
                )
            }
        }
    }
}
