//! The connections of one core to one member.
//!
//! HTTP/2 connections are filled one after the other up to the stream limit the member announced:
//! spreading requests over half-empty connections would break the batching that makes HTTP/2 cheap,
//! and a request beyond the limit would hang behind streams that may never end. Whether the member
//! speaks HTTP/2 is learned by the first dial.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use traces::{Span, Trace};

use super::connect::{ConnectError, Target};
use super::{Held, SendError, h1, h2};
use crate::metrics::{ClusterMetrics, InFlight};
use crate::spans;
use net::tls;

/// HTTP/2 connections one core may hold to one member: with the customary 100 streams each, 25,600
/// requests at a time.
const MAX_H2_CONNECTIONS: usize = 256;

/// See the module's text.
pub struct Pool {
    target: Arc<Target>,
    core: usize,
    metrics: Arc<ClusterMetrics>,
    state: Mutex<Connections>,
    h1: Arc<h1::Idle>,
    /// Notified when a stream of any connection is given back.
    room: Arc<Notify>,
    this: Weak<Pool>,
}

/// Dials in a row whose connections were gone before any request could use them. A member that
/// takes every connection and closes it at once would have each waiting request dial for ever.
const FRUITLESS_DIALS: u32 = 4;

#[derive(Default)]
struct Connections {
    h2: Vec<Arc<h2::Connection>>,
    /// HTTP/2 connections made since the last request that found one to use.
    fruitless: u32,
    /// The last dial ended with HTTP/1.1: every request dials for itself.
    speaks_h1: bool,
    dial: Option<DialOutcome>,
}

type DialOutcome = watch::Receiver<Option<Result<(), Arc<ConnectError>>>>;

/// The right to send one request.
pub enum Lease {
    H2(h2::Lease),
    H1(h1::Lease),
}

enum Step {
    Use(Lease),
    Await(DialOutcome),
    /// Begun for this very request, with its span.
    Began(DialOutcome),
    DialH1(h1::ConnectionPermit),
    Exhausted(usize),
    /// The member closes what it accepts.
    Refused,
}

// === impl Pool ===

impl Pool {
    pub fn new(target: Arc<Target>, core: usize, metrics: Arc<ClusterMetrics>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            target,
            core,
            metrics,
            state: Mutex::default(),
            h1: Arc::default(),
            room: Arc::default(),
            this: this.clone(),
        })
    }

    /// A connection with room for one more request, dialled if there is none. Callers that need the
    /// same dial share it, and a caller that goes away does not end it.
    pub async fn acquire(&self, trace: Option<&Trace>) -> Result<Lease, SendError> {
        loop {
            match self.step(trace) {
                Step::Use(lease) => return Ok(lease),
                Step::Exhausted(limit) => return Err(SendError::Exhausted(limit)),
                Step::Refused => return Err(SendError::Refused),
                // Rare, and large: not to be carried around by every request.
                Step::DialH1(permit) => return Box::pin(self.dial_h1(permit, trace)).await,
                Step::Began(outcome) => self.wait(outcome, None).await?,
                Step::Await(outcome) => self.wait(outcome, self.target.shared_span(trace)).await?,
            }
        }
    }

    /// Waits until it is worth looking again: the dial is done, or a stream of an open connection
    /// was given back meanwhile. Fails if the dial did, and there is no other way.
    async fn wait(&self, mut outcome: DialOutcome, span: Option<Span>) -> Result<(), SendError> {
        let dialled = tokio::select! {
            biased;
            // The sender lives in the dialling task and always speaks before it ends, short of a
            // panic.
            dialled = outcome.wait_for(Option::is_some) => dialled.ok().and_then(|dialled| dialled.clone()),
            () = self.room.notified() => Some(Ok(())),
        };
        if let Some(dialled) = &dialled {
            spans::ended(span, dialled, |error| error.kind());
        }
        match dialled {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) if self.has_room() => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => {
                self.state.lock().dial = None;
                Err(SendError::Broken("the dialling task ended early".into()))
            }
        }
    }

    fn has_room(&self) -> bool {
        self.state.lock().h2.iter().any(|connection| connection.has_room())
    }

    fn step(&self, trace: Option<&Trace>) -> Step {
        let mut state = self.state.lock();
        state.h2.retain(|connection| !connection.is_closing());
        if let Some(lease) = state.h2.iter().find_map(h2::Connection::lease) {
            state.fruitless = 0;
            return Step::Use(Lease::H2(lease));
        }
        if state.speaks_h1 {
            return self.step_h1();
        }
        if let Some(outcome) = &state.dial {
            return Step::Await(outcome.clone());
        }
        if state.h2.len() >= MAX_H2_CONNECTIONS {
            return Step::Exhausted(MAX_H2_CONNECTIONS);
        }
        if state.fruitless >= FRUITLESS_DIALS {
            state.fruitless = 0;
            return Step::Refused;
        }
        let (report, outcome) = watch::channel(None);
        state.dial = Some(outcome.clone());
        let (target, pool) = (Arc::clone(&self.target), self.this.clone());
        let span = target.span(trace);
        tokio::spawn(dial(target.held(self.core), target, pool, report, span));
        Step::Began(outcome)
    }

    fn step_h1(&self) -> Step {
        match self.h1.take() {
            Some(lease) => Step::Use(Lease::H1(lease)),
            None => self.h1_permit().map_or(Step::Exhausted(h1::MAX_OPEN), Step::DialH1),
        }
    }

    async fn dial_h1(&self, permit: h1::ConnectionPermit, trace: Option<&Trace>) -> Result<Lease, SendError> {
        let span = self.target.span(trace);
        let connected = async {
            let held = self.target.held(self.core);
            let transport = self.target.connect_any(&held, span.as_ref().map(Span::trace)).await?;
            if transport.alpn() == Some(tls::H2) {
                // The member changed its mind, perhaps by an upgrade of its own: learn again.
                self.state.lock().speaks_h1 = false;
                return Err(ConnectError::Http2 {
                    address: self.target.address(),
                    source: "the member changed from HTTP/1.1 to HTTP/2, try again".into(),
                });
            }
            h1::Connection::start(transport, permit, &self.target, held).await
        };
        let connected = connected.await;
        spans::ended(span, &connected, ConnectError::kind);
        match connected {
            Ok(connection) => Ok(Lease::H1(h1::Lease::new(connection, Arc::downgrade(&self.h1)))),
            Err(error) => {
                self.metrics.dial_failed(error.kind());
                Err(Arc::new(error).into())
            }
        }
    }

    fn dialled(&self, outcome: Result<Dialled, ConnectError>) -> Result<(), Arc<ConnectError>> {
        let mut state = self.state.lock();
        state.dial = None;
        match outcome {
            Ok(Dialled::H2(connection)) => {
                state.fruitless += 1;
                state.h2.push(connection);
            }
            Ok(Dialled::H1(connection)) => {
                state.speaks_h1 = true;
                self.h1.put(connection);
            }
            Err(error) => {
                self.metrics.dial_failed(error.kind());
                return Err(Arc::new(error));
            }
        }
        Ok(())
    }

    fn h1_permit(&self) -> Option<h1::ConnectionPermit> {
        self.h1.permit(InFlight::new(self.metrics.connections()))
    }
}

enum Dialled {
    H2(Arc<h2::Connection>),
    H1(h1::Connection),
}

/// One shared dial, as a task of its own. Holds the pool weakly: when the cluster is gone, so is
/// the interest.
async fn dial(
    held: Held,
    target: Arc<Target>,
    pool: Weak<Pool>,
    report: watch::Sender<Option<Result<(), Arc<ConnectError>>>>,
    span: Option<Span>,
) {
    let outcome = async {
        let transport = target.connect_any(&held, span.as_ref().map(Span::trace)).await?;
        let Some(pool) = pool.upgrade() else {
            return Ok(None);
        };
        if transport.alpn() == Some(tls::H2) {
            let (open, room) = (InFlight::new(pool.metrics.connections()), Arc::clone(&pool.room));
            drop(pool);
            let leaving = transport.leaving();
            return h2::Connection::start(transport, &target, held, open, room, leaving)
                .await
                .map(Dialled::H2)
                .map(Some);
        }
        let permit =
            pool.h1_permit().ok_or(ConnectError::Exhausted { address: target.address(), limit: h1::MAX_OPEN })?;
        drop(pool);
        h1::Connection::start(transport, permit, &target, held).await.map(Dialled::H1).map(Some)
    };
    let outcome = outcome.await;
    spans::ended(span, &outcome, ConnectError::kind);
    if let Some(pool) = pool.upgrade() {
        let outcome = outcome.map(|dialled| dialled.expect("the pool lives, so the dial was carried through"));
        let _ = report.send(Some(pool.dialled(outcome)));
    }
}
