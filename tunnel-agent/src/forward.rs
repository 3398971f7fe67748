//! One stream: checks its destination, connects, and joins the two.
//!
//! A dial ends when its client gives up, and earlier than the tunnel-server's timeout, so that the
//! agent, which knows the reason, reports it.

mod dial;
mod lookup;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use net::dial::DialError;
use net::throttle::LogThrottle;
use net::words;
use telemetry::metrics::InFlight;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tunnel::bridge::bridge_within;
use tunnel::{Destination, Gauge, Hop, Incoming, Reason, Refusal, Timing};

pub use self::dial::Failure;
use self::lookup::Lookups;
pub use self::lookup::THREADS;
use crate::metrics::Metrics;
use crate::streams::Streams;
use crate::targets::Targets;

/// Limit of open streams. Each holds at most a window of bytes and one socket.
const MOST_STREAMS: usize = 10_000;
/// Limit of concurrent dials: destinations that do not answer must not accumulate sockets.
const MOST_DIALS: usize = 512;
/// Part of the dial timeout that is kept for the answer's way back to the server, whose own dial
/// timeout is as long and starts slightly earlier.
const MARGIN: Duration = Duration::from_secs(1);

/// Serves the streams of all links.
#[derive(Debug)]
pub struct Forwarder {
    targets: Targets,
    /// Timeout for look-up and connect together.
    patience: Duration,
    room: Arc<Semaphore>,
    dials: Semaphore,
    lookups: Lookups,
    streams: Arc<Streams>,
    metrics: Metrics,
    refusals: LogThrottle,
}

/// A stream and its destination's socket, until both directions have ended.
type BridgeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

// === impl Forwarder ===

impl Forwarder {
    /// `dial_timeout` is the servers' own.
    pub fn new(targets: Targets, dial_timeout: Duration, streams: Arc<Streams>, metrics: Metrics) -> Self {
        Self {
            targets,
            patience: dial_timeout.saturating_sub(MARGIN.min(dial_timeout / 5)),
            room: Arc::new(Semaphore::new(MOST_STREAMS)),
            dials: Semaphore::new(MOST_DIALS),
            lookups: Lookups::default(),
            streams,
            metrics,
            refusals: LogThrottle::default(),
        }
    }

    /// Serves one stream from its `CONNECT` to its end.
    pub async fn serve(self: Arc<Self>, incoming: Incoming) {
        let Ok(_room) = Arc::clone(&self.room).try_acquire_owned() else {
            return self.refuse(incoming, &Failure::TooManyStreams);
        };
        // The future that opens is boxed, and dropped once the stream is open: a stream lasts, and
        // must not carry the memory of the steps before it.
        if let Some(joined) = Box::pin(self.open(incoming)).await {
            joined.await;
        }
    }

    /// Dials, and answers the client.
    async fn open(self: &Arc<Self>, mut incoming: Incoming) -> Option<BridgeFuture> {
        let started = Instant::now();
        let destination = incoming.destination.clone();
        let dialled = tokio::select! {
            biased;
            () = incoming.cancelled() => {
                self.metrics.cancelled.inc();
                return None;
            }
            dialled = self.dial(&destination) => dialled,
        };
        match dialled {
            Ok(socket) => {
                let took = started.elapsed();
                self.metrics.dial_seconds.observe(took);
                self.metrics.connected.inc();
                self.join(incoming, destination, socket, Timing::of_dial(took))
            }
            Err(failure) => {
                self.refuse(incoming, &failure);
                None
            }
        }
    }

    async fn dial(&self, destination: &Destination) -> Result<TcpStream, Failure> {
        let candidate = self.targets.candidate(destination)?;
        let Ok(_dialling) = self.dials.try_acquire() else { return Err(Failure::TooManyDials) };
        dial::connect(&self.targets, &self.lookups, &candidate, destination, Instant::now() + self.patience).await
    }

    /// The bridge has a box of its own: an async block that awaits a captured future reserves
    /// memory for it twice.
    fn join(
        self: &Arc<Self>,
        incoming: Incoming,
        destination: Destination,
        socket: TcpStream,
        timing: Timing,
    ) -> Option<BridgeFuture> {
        // The client is gone: dropping the socket closes it.
        let stream = incoming.accept_timed(timing).ok()?;
        let gauge = Arc::new(Gauge::default());
        let listed = self.streams.list(Arc::clone(&gauge));
        let bridge = Box::pin(bridge_within(stream, socket, gauge, true, self.streams.budget()));
        let open = InFlight::new(&self.metrics.streams);
        let broken = self.metrics.streams_broken.clone();
        Some(Box::pin(async move {
            let _counted = (listed, open);
            if let Err(error) = bridge.await {
                broken.inc();
                tracing::debug!(%destination, error = words::io(&error), "stream broken");
            }
        }))
    }

    fn refuse(&self, incoming: Incoming, failure: &Failure) {
        self.metrics.failed(failure.word());
        if matches!(failure, Failure::NotAllowed(_)) {
            self.metrics.refused_destinations.inc();
            if let Some(suppressed) = self.refusals.due() {
                let destination = &incoming.destination;
                tracing::warn!(%destination, suppressed, "destination refused: no --allow matches it");
            }
        } else {
            tracing::debug!(destination = %incoming.destination, reason = %failure, "not connected");
        }
        let cluster = self.targets.cluster();
        let message = match failure {
            Failure::NotAllowed(_) => failure.to_string(),
            _ => format!("the agent of cluster {cluster} cannot connect: {failure}"),
        };
        incoming.refuse(&Refusal::new(Hop::Agent, failure.reason(), message));
    }
}

// === impl Failure ===

impl Failure {
    fn reason(&self) -> Reason {
        match self {
            Self::NotAllowed(_) => Reason::Forbidden,
            Self::TooManyStreams | Self::TooManyDials => Reason::Limit,
            Self::Dial(DialError::Resolve { .. } | DialError::NoAddress { .. }) => Reason::Lookup,
            Self::Dial(error) if error.is_timeout() => Reason::DialTimeout,
            Self::Dial(_) => Reason::Unreachable,
        }
    }

    /// For metrics.
    fn word(&self) -> &'static str {
        match self {
            Self::TooManyStreams | Self::TooManyDials => "limit",
            _ => self.reason().as_str(),
        }
    }
}
