//! Asks several tunnel-servers for one stream: the next one when a server refuses, or does not
//! answer for a moment.
//!
//! A silent server is still waited for while the next is asked, because the member may be the slow
//! one. The first server to open the stream wins, and the other dials are cancelled.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};
use traces::Trace;
use tunnel::{ClusterName, Destination, Timing};

use super::OPENED;
use super::error::{Cause, Missing, TunnelError, Unreachable};
use super::replica::{NotOpened, Replica};
use super::stream::Tunnelled;
use crate::metrics::{TunnelHop, TunnelOpen};
use crate::spans;

/// Silence after which the next server is asked as well.
const STAGGER: Duration = Duration::from_secs(1);

/// Outcome for a server that has not answered by the deadline.
const UNANSWERED: &str = "unanswered";

/// The stream to open.
#[derive(Clone, Copy)]
pub struct OpenRequest<'a> {
    pub cluster: &'a ClusterName,
    pub to: &'a Destination,
    pub deadline: Instant,
    /// The parent of its spans, if it is traced.
    pub trace: Option<&'a Trace>,
}

/// Asks `replicas` in order. `Ok(None)` means that none of them has the cluster; then `missing` has
/// the reasons. `attempt` records every answer.
pub async fn ask(
    wanted: OpenRequest<'_>,
    replicas: Vec<Arc<Replica>>,
    missing: &mut Missing,
    attempt: &mut TunnelOpen,
) -> Result<Option<(Tunnelled, SocketAddr)>, TunnelError> {
    let mut left = replicas.into_iter();
    let mut asked = FuturesUnordered::new();
    let mut silent: Vec<(Arc<Replica>, Instant)> = Vec::new();
    let mut next = Instant::now();
    loop {
        if next <= Instant::now()
            && let Some(replica) = left.next()
        {
            silent.push((Arc::clone(&replica), Instant::now()));
            asked.push(one(wanted, replica));
            next = Instant::now() + STAGGER;
        }
        if asked.is_empty() {
            return Ok(None);
        }
        let (replica, outcome) = tokio::select! {
            biased;
            Some(answer) = asked.next() => answer,
            () = sleep_until(next), if left.len() > 0 => continue,
            () = sleep_until(wanted.deadline) => {
                for (replica, since) in silent {
                    attempt.asked(hop(&replica, UNANSWERED, since, Timing::default()));
                    missing.unreachable(Unreachable::Silent { address: replica.address(), linked: replica.has_link() });
                }
                return Ok(None);
            }
        };
        let address = replica.address();
        let word = outcome.as_ref().map_or_else(NotOpened::word, |_| OPENED);
        if let Some((_, since)) = silent.extract_if(.., |(other, _)| other.address() == address).next() {
            let timing = outcome.as_ref().map_or_else(|_| Timing::default(), Tunnelled::timing);
            attempt.asked(hop(&replica, word, since, timing));
        }
        match outcome {
            Ok(stream) => return Ok(Some((stream, address))),
            Err(NotOpened::Refused(refusal)) if !refusal.reason.is_worth_another_try() => {
                return Err(Cause::Refused(refusal).into());
            }
            Err(NotOpened::Refused(refusal)) => missing.refused(refusal),
            Err(NotOpened::Unreachable(unreachable)) => missing.unreachable(unreachable),
        }
        next = Instant::now();
    }
}

fn hop(replica: &Replica, outcome: &'static str, since: Instant, timing: Timing) -> TunnelHop {
    let (server, took) = (Some(replica.address()), since.elapsed());
    TunnelHop { server, outcome, took, round_trip: replica.round_trip(), timing }
}

async fn one(wanted: OpenRequest<'_>, replica: Arc<Replica>) -> (Arc<Replica>, Result<Tunnelled, NotOpened>) {
    let span = spans::tunnel_hop(wanted.trace, wanted.cluster.as_str(), Some(replica.address()));
    let outcome = replica.open(wanted.cluster, wanted.to).await;
    spans::ended(span, &outcome, NotOpened::word);
    let outcome = outcome.map(|stream| Tunnelled::new(stream, replica.via()));
    (replica, outcome)
}
