//! The end of a link that accepts streams: an HTTP/2 server.

mod driver;
mod incoming;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use net::linger::Linger;
use net::observed::Observed;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use self::incoming::Incoming;
use crate::activity::{Activity, ActivityRecorder};
use crate::ahead::ReadAhead;
use crate::keepalive::Keepalive;
use crate::leaving::Notices;
use crate::link::broken;
use crate::signals::Signal;
use crate::turn::Turns;
use crate::{LinkError, Settings};

/// Controls one served connection. Cheap to clone; create one with [`Serving::default`] and pass it
/// to [`serve`].
#[derive(Debug, Clone, Default)]
pub struct Serving(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    activity: Arc<Activity>,
    open: Arc<AtomicUsize>,
    leave: CancellationToken,
    notices: Notices,
}

/// Length of the preface, which a client sends before its first frame (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// Serves the peer's streams until the connection ends. Passes each valid `CONNECT` to `handler`,
/// and spawns its future on the current runtime. Answers malformed ones with 400, and `POST
/// /leave`, `GET /leaving` and other requests itself. Returns when the connection has ended, with
/// the reason (`Ok` for a clean end). A handler that panics ends only its own stream.
pub async fn serve<T, H, F>(io: T, settings: &Settings, serving: Serving, handler: H) -> Result<(), LinkError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Incoming) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let activity = &serving.0.activity;
    let turns = Turns::default();
    let io = Observed::new(Linger::new(io), ActivityRecorder(Arc::clone(activity)));
    let io = ReadAhead::new(io, turns.clone(), PREFACE);
    let handshake = timeout(settings.handshake_timeout, settings.server().handshake::<_, Bytes>(io));
    let mut connection =
        handshake.await.map_err(|_| LinkError::HandshakeTimeout(settings.handshake_timeout))?.map_err(broken)?;
    let pings = connection.ping_pong().expect("taken once");
    let keepalive = Keepalive::new(Arc::clone(activity), pings, settings);
    driver::Driver { connection, keepalive, turns, serving: &serving, settings, handler, draining: false }.run().await
}

// === impl Serving ===

impl Serving {
    /// Sends GOAWAY: no new streams, and the connection ends with its last stream.
    pub fn drain(&self) {
        self.0.activity.signals.set(Signal::Drain);
    }

    /// Ends the connection now; its streams are reset.
    pub fn close(&self) {
        self.0.activity.signals.set(Signal::Close);
    }

    /// Completes when the peer has asked (`POST /leave`) to make links elsewhere.
    pub async fn asked_to_leave(&self) {
        self.0.leave.cancelled().await;
    }

    /// Notifies the peer that the stream with this [`Incoming::id`] is about to be cut further on.
    /// The stream goes on for a while.
    pub fn tell_leaving(&self, id: u32) {
        self.0.notices.tell(id);
    }

    /// Streams open or being opened.
    pub fn streams(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Round trip of the last PING.
    pub fn rtt(&self) -> Option<Duration> {
        self.0.activity.rtt()
    }

    /// Time since the last byte was received.
    pub fn silence(&self) -> Duration {
        self.0.activity.silence()
    }
}

#[cfg(test)]
mod tests;
