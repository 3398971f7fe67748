//! Pools the connections of one core to one member.
//!
//! HTTP/2 connections are filled one after the other up to the member's stream limit: requests
//! spread over half-empty connections would lose the batching that makes HTTP/2 cheap, and a
//! request beyond the limit would wait behind streams that may never end. The first dial shows
//! whether the member supports HTTP/2.

mod dialling;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use traces::{Span, Trace};

use self::dialling::{Dialled, dial};
use super::connect::{ConnectError, Target};
use super::{SendError, h1, h2};
use crate::metrics::{ClusterMetrics, InFlight};
use crate::spans;
use net::tls;

/// Most HTTP/2 connections of one core to one member: with the usual 100 streams each, 25,600
/// concurrent requests.
const MAX_H2_CONNECTIONS: usize = 256;

/// The connections of one core to one member.
pub struct Pool {
    target: Arc<Target>,
    core: usize,
    metrics: Arc<ClusterMetrics>,
    state: Mutex<Connections>,
    h1: Arc<h1::Idle>,
    /// Notified when a stream of any connection is returned.
    room: Arc<Notify>,
    this: Weak<Pool>,
}

/// Most dials in a row whose connections were gone before any request could use them. Otherwise,
/// with a member that accepts every connection and closes it at once, each waiting request would
/// dial forever.
const FRUITLESS_DIALS: u32 = 4;

#[derive(Default)]
struct Connections {
    h2: Vec<Arc<h2::Connection>>,
    /// HTTP/2 connections opened since a request last found a usable one.
    fruitless: u32,
    /// The last dial chose HTTP/1.1, so every request dials for itself.
    speaks_h1: bool,
    dial: Option<DialOutcome>,
}

type DialOutcome = watch::Receiver<Option<Result<(), Arc<ConnectError>>>>;

/// A connection for one request.
pub enum Lease {
    H2(h2::Lease),
    H1(h1::Lease),
}

enum Step {
    Use(Lease),
    Await(DialOutcome),
    /// This request began the dial, with its span.
    Began(DialOutcome),
    DialH1(h1::ConnectionPermit),
    Exhausted(usize),
    /// The member closes every connection that it accepts.
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

    /// Returns a connection with room for one more request, dialled if there is none. Callers that
    /// need the same dial share it, and a cancelled caller does not end it.
    pub async fn acquire(&self, trace: Option<&Trace>) -> Result<Lease, SendError> {
        loop {
            match self.step(trace) {
                Step::Use(lease) => return Ok(lease),
                Step::Exhausted(limit) => return Err(SendError::Exhausted(limit)),
                Step::Refused => return Err(SendError::Refused),
                // Boxed: rare, and too large for every request's future.
                Step::DialH1(permit) => return Box::pin(self.dial_h1(permit, trace)).await,
                Step::Began(outcome) => self.wait(outcome, None).await?,
                Step::Await(outcome) => self.wait(outcome, self.target.shared_span(trace)).await?,
            }
        }
    }

    /// Waits until another try makes sense: the dial is done, or an open connection got a stream
    /// back. Fails if the dial failed and no connection has room.
    async fn wait(&self, mut outcome: DialOutcome, span: Option<Span>) -> Result<(), SendError> {
        let dialled = tokio::select! {
            biased;
            // The sender belongs to the dialling task, which always reports before it ends, unless
            // it panics.
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
                // The member now chooses HTTP/2, perhaps after an update: find out again.
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
