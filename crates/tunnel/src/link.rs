//! The end of a link that opens streams: an HTTP/2 client.

mod driver;
mod error;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request, StatusCode};
use net::http2;
use net::linger::Linger;
use net::observed::Observed;
use net::queue::Queue;
use net::words::{self, Causes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use self::driver::{Driver, Shared};
use self::error::not_opened;
use crate::activity::{Activity, ActivityRecorder};
use crate::ahead::ReadAhead;
use crate::answered::{NoAnswer, answered};
use crate::keepalive::Keepalive;
use crate::leaving::{LEAVING, Leaving, Notice};
use crate::signals::Signal;
use crate::stream::{Open, UnattendedStreams};
use crate::turn::Turns;
use crate::{ClusterName, Destination, Hop, Refusal, Settings, Stream, Timing};

pub(crate) use self::error::broken;
pub use self::error::{LinkError, NotSent, OpenError};

/// Header of a `CONNECT` that names the cluster.
pub const CLUSTER: &str = "tunnel-cluster";
/// Path of the request to make links elsewhere.
pub const LEAVE: &str = "/leave";

/// A connection on which streams are opened. Cheap to clone. Ends when [`Link::close`] is called,
/// the peer ends it, or nothing is received for too long. Once all clones are dropped, it ends with
/// its last stream.
#[derive(Debug, Clone)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    sender: SendRequest<Bytes>,
    open: Arc<AtomicUsize>,
    /// Receives notices of leaving streams, where the peer may know more than the link.
    listening: Option<AbortHandle>,
    peer: Hop,
    settings: Settings,
}

/// Whether a link takes streams.
#[derive(Debug, Clone)]
enum Phase {
    Open,
    Leaving,
    Ended(LinkError),
}

/// An open without an answer; reports it when it is given up.
struct Unanswered {
    activity: Arc<Activity>,
    sent: Instant,
}

// === impl Link ===

impl Link {
    /// Starts HTTP/2 as its client on `io` and waits for the peer's SETTINGS. Spawns the
    /// connection's task on the current runtime. `peer` is the other end, for refusals that do not
    /// name their hop.
    pub async fn start<T>(io: T, settings: &Settings, peer: Hop) -> Result<Self, LinkError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::new(Activity::default());
        let turns = Turns::default();
        let io = Observed::new(Linger::new(io), ActivityRecorder(Arc::clone(&activity)));
        let io = ReadAhead::new(io, turns.clone(), 0);
        let started = async {
            let (sender, mut connection) = settings.client().handshake::<_, Bytes>(io).await.map_err(broken)?;
            let settled = http2::settled(&mut connection, |connection| connection.max_concurrent_send_streams()).await;
            settled.map_err(|error| error.map_or(LinkError::Closed, broken))?;
            Ok((sender, connection))
        };
        let (sender, mut connection) = timeout(settings.handshake_timeout, started)
            .await
            .map_err(|_| LinkError::HandshakeTimeout(settings.handshake_timeout))??;
        let pings = connection.ping_pong().expect("taken once");
        let keepalive = Keepalive::new(Arc::clone(&activity), pings, settings);
        let streams = Arc::<Leaving>::default();
        let unattended = Arc::new(UnattendedStreams::new(Arc::clone(&activity)));
        let phase = watch::Sender::new(Phase::Open);
        let shared = Arc::new(Shared { activity, phase, streams: Arc::clone(&streams), unattended });
        let driver = Driver::new(connection, sender.clone(), keepalive, turns, Arc::clone(&shared));
        tokio::spawn(driver.run().in_current_span());
        // Behind an agent there is no further link.
        let listening = if peer == Hop::Server { listen(&sender, streams) } else { None };
        let open = Arc::default();
        Ok(Self(Arc::new(Inner { shared, sender, open, listening, peer, settings: settings.clone() })))
    }

    /// Opens a stream to `to`, in `cluster` if the peer serves several. Waits as long as the peer
    /// takes; dropping the future cancels the dial at the far end. Does not wait for room: a full
    /// link is [`OpenError::NotSent`].
    pub async fn open(&self, to: &Destination, cluster: Option<&ClusterName>) -> Result<Stream, OpenError> {
        let inner = &*self.0;
        match &*inner.shared.phase.borrow() {
            Phase::Open => {}
            Phase::Leaving => return Err(NotSent::Leaving.into()),
            Phase::Ended(error) => return Err(NotSent::Ended(error.clone()).into()),
        }
        let limit = inner.limit();
        let open = Open::of(&inner.open, limit).ok_or(NotSent::Full(limit))?;
        let mut request = Request::builder().method(Method::CONNECT).uri(to.to_string());
        if let Some(cluster) = cluster {
            request = request.header(CLUSTER, cluster.as_str());
        }
        let request = request.body(()).map_err(|error| NotSent::Failed(Causes::of(error)))?;
        let sent = inner.sender.clone().send_request(request, false);
        let (answer, mut send) = sent.map_err(|error| NotSent::Failed(Causes::of(error)))?;
        let _unanswered = Unanswered { activity: Arc::clone(&inner.shared.activity), sent: Instant::now() };
        let (head, body) = match answered(answer).await {
            Ok(answer) => answer.into_parts(),
            Err(NoAnswer::Failed(error)) => return Err(not_opened(error)),
            Err(error @ NoAnswer::Interim) => {
                // Endless interim answers would burden the link, and so all of its streams, for as
                // long as a caller waits.
                self.close();
                return Err(OpenError::Lost(Causes::of(error)));
            }
        };
        if head.status == StatusCode::OK {
            let notice = inner.notice(body.stream_id());
            return Ok(Stream::new(send, body, Queue::default(), open)
                .noticed_by(notice)
                .timed(Timing::read(&head.headers))
                .attended_by(&inner.shared.unattended));
        }
        // Ends the stream cleanly; fails if the peer has done so already.
        let _ = send.send_data(Bytes::new(), true);
        Err(Refusal::read(head.status, &head.headers, inner.peer).into())
    }

    /// Whether new streams may be tried: the link is not leaving, has not ended, has room, and is
    /// not suspected dead. An open that got no answer while nothing at all was received makes a
    /// link suspect until something is received again, and so does an unanswered PING.
    pub fn is_usable(&self) -> bool {
        matches!(&*self.0.shared.phase.borrow(), Phase::Open) && !self.is_suspect() && self.streams() < self.0.limit()
    }

    fn is_suspect(&self) -> bool {
        let settings = &self.0.settings;
        // A PING was sent after `keepalive` of silence; a live peer has answered by now.
        let overdue = settings.keepalive + settings.keepalive_timeout / 4;
        self.0.shared.activity.is_suspect() || self.silence() > overdue
    }

    /// Streams open or being opened.
    pub fn streams(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Round trip of the last PING.
    pub fn rtt(&self) -> Option<Duration> {
        self.0.shared.activity.rtt()
    }

    /// Time since the last byte was received.
    pub fn silence(&self) -> Duration {
        self.0.shared.activity.silence()
    }

    /// Asks the peer to make links elsewhere (`POST /leave`), and takes no new streams from now on.
    /// Existing streams go on. Bounded in time; a peer that does not answer is no error.
    pub async fn leave(&self) {
        self.0.shared.leaving();
        let request = Request::post(format!("http://tunnel{LEAVE}")).body(()).expect("a constant");
        let Ok((answer, _)) = self.0.sender.clone().send_request(request, true) else { return };
        match timeout(self.0.settings.handshake_timeout, answered(answer)).await {
            Ok(Ok(answer)) if answer.status().is_success() => {}
            Ok(Ok(answer)) => tracing::debug!(status = %answer.status(), "a peer refused to leave"),
            Ok(Err(error)) => tracing::debug!(error = words::causes(&error), "a link was lost while leaving"),
            Err(_) => tracing::debug!("a peer did not answer the request to leave"),
        }
    }

    /// Ends the link now; its streams are reset at both ends.
    pub fn close(&self) {
        self.0.shared.activity.signals.set(Signal::Close);
    }

    /// Drops this handle, and completes when the link has ended: with its last stream, everything
    /// sent. Other clones keep it alive.
    pub async fn finished(self) -> LinkError {
        let shared = Arc::clone(&self.0.shared);
        drop(self);
        shared.ended().await
    }

    /// Completes when the link no longer accepts new streams: GOAWAY, [`Link::leave`], or its end.
    pub async fn leaving(&self) {
        let mut phase = self.0.shared.phase.subscribe();
        let _ = phase.wait_for(|phase| !matches!(phase, Phase::Open)).await;
    }

    /// Completes when the link has ended, and returns why.
    pub async fn ended(&self) -> LinkError {
        self.0.shared.ended().await
    }
}

/// Asks for notices of streams that are leaving.
fn listen(sender: &SendRequest<Bytes>, streams: Arc<Leaving>) -> Option<AbortHandle> {
    let request = Request::get(format!("http://tunnel{LEAVING}")).body(()).expect("a constant");
    let (answer, _) = sender.clone().send_request(request, true).ok()?;
    Some(tokio::spawn(streams.follow(answer).in_current_span()).abort_handle())
}

// === impl Inner ===

impl Inner {
    /// Most streams open at a time. The request for notices takes one.
    fn limit(&self) -> usize {
        self.sender.current_max_send_streams().saturating_sub(usize::from(self.listening.is_some()))
    }

    fn notice(&self, id: h2::StreamId) -> Notice {
        let streams = &self.shared.streams;
        if self.listening.is_some() { streams.single(id.as_u32()) } else { streams.whole() }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            // The answer would keep the connection open.
            listening.abort();
        }
        self.shared.streams.all();
        self.shared.activity.signals.set(Signal::Abandoned);
    }
}

// === impl Unanswered ===

impl Drop for Unanswered {
    fn drop(&mut self) {
        if self.sent.elapsed() >= Settings::SUSPECT_AFTER {
            self.activity.unanswered(self.sent);
        }
    }
}

#[cfg(test)]
mod tests;
