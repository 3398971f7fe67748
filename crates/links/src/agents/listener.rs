//! Turns an accepted connection into a link, or refuses it with the reason.

use std::hash::RandomState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use net::accept;
use net::large_reads::LargeReads;
use net::pending::{Pending, PendingPermit};
use net::words;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tunnel::register::{self, Applicant};
use tunnel::{Hop, Link, Settings};

use super::claim::Claim;
use super::doubts::{Doubt, Doubts};
use super::judge::{Judge, Refused};
use super::judging::{Judging, JudgingPermit};
use super::supervisor::LinkSupervisor;
use crate::registry::{Credential, Linked, Metrics, Named, Outcome, Registry};
use net::throttle::LogThrottle;

/// Timeout of a judgement: as long as a review may take with its retries, and less than agents
/// wait.
const JUDGEMENT: Duration = Duration::from_secs(20);
/// `Retry-After` for an agent that met a limit, or a server that is shutting down.
const LATER: Duration = Duration::from_secs(5);

type Io = TlsStream<LargeReads<TcpStream>>;

pub struct Listener {
    pub tls: TlsAcceptor,
    pub judge: Judge,
    pub doubts: Arc<Doubts>,
    pub registry: Arc<Registry>,
    pub metrics: Metrics,
    pub settings: Settings,
    /// Identifies this process to agents.
    pub server: String,
    pub recheck: Duration,
    /// Ends the links in order.
    pub leave: CancellationToken,
    /// Ends everything at once.
    pub end: CancellationToken,
    pub links: TaskTracker,
    /// Connections that have not registered, or that are being refused. Any client can open them.
    pub pending: Pending,
    /// Permits for registrations being judged.
    pub judging: Judging,
    /// Of credentials.
    pub hasher: RandomState,
    pub refusals: LogThrottle,
    pub sheds: LogThrottle,
}

/// Whether a claim must be judged.
enum Standing<'a> {
    /// The hub's review of it is cached, and changes are followed.
    Known(Credential, Doubt),
    /// It must be judged, with this permit; None: no permit was free for too long.
    Unknown(Option<JudgingPermit<'a>>),
}

/// A connection that was refused or lost; the log has it already.
struct Failed(Outcome);

// === impl Listener ===

impl Listener {
    pub async fn run(self, listener: TcpListener) {
        let this = Arc::new(self);
        let take = |(stream, peer): (TcpStream, SocketAddr)| {
            // Before the task runs, so that permits go in the order of arrival.
            let pending_permit = this.pending.enter(peer.ip());
            let connection = Arc::clone(&this).connection(stream, peer, pending_permit);
            // The task ends with the listener, because the runtime is the caller's and continues.
            this.links.spawn(this.end.clone().run_until_cancelled_owned(connection));
        };
        accept::each("tunnel-agents", || accept::tcp(&listener), take).await;
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, pending_permit: PendingPermit) {
        match Box::pin(self.link(stream, peer, pending_permit)).await {
            Ok((linked, claim, doubt)) => {
                self.metrics.registered(Outcome::Linked);
                let Self { judge, metrics, recheck, leave, .. } = &*self;
                let supervisor = LinkSupervisor { judge, metrics, recheck: *recheck, leave, linked, claim, doubt };
                supervisor.run().await;
            }
            Err(Failed(outcome)) => self.metrics.registered(outcome),
        }
    }

    async fn link(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        pending_permit: PendingPermit,
    ) -> Result<(Linked, Claim, Doubt), Failed> {
        let (applicant, claim, standing) = tokio::select! {
            biased;
            came = self.arrival(stream, peer) => came?,
            () = pending_permit.given_away() => return Err(self.shed(peer)),
        };
        drop(pending_permit);
        if self.registry.is_draining() {
            let message = "this tunnel-server is shutting down: link to another";
            return Err(self.turn_away(applicant, &claim, Outcome::Draining, message.to_owned()).await);
        }
        let (credential, doubt) = match self.judged(&claim, standing).await {
            Ok(judged) => judged,
            Err(refused) => return Err(self.refuse(applicant, &claim, &refused).await),
        };
        let pending_permit = match self.registry.reserve(&claim.registration, &credential) {
            Ok(pending_permit) => pending_permit,
            Err(full) => return Err(self.turn_away(applicant, &claim, Outcome::Limit, full.to_string()).await),
        };
        let link = self.welcome(applicant).await.map_err(|error| {
            tracing::info!(cluster = %claim.registration.cluster, %peer, error, "agent lost before it was linked");
            Failed(Outcome::Lost)
        })?;
        let named = Named::new(&claim.registration, peer, credential);
        Ok((self.registry.add(pending_permit, named, link), claim, doubt))
    }

    /// Returns a registration, with a permit to judge it if it needs one and one becomes free in
    /// time.
    async fn arrival(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Result<(Applicant<Io>, Claim, Standing<'_>), Failed> {
        // One timeout for handshake and head: a client that sends byte by byte could otherwise take
        // twice as long.
        let patience = self.settings.handshake_timeout;
        let application = timeout(patience, self.application(stream, peer)).await;
        let application = application.unwrap_or_else(|_| Err(format!("no registration within {patience:?}")));
        let (applicant, claim) = application.map_err(|reason| {
            // Health checks of load balancers look like this, so they get no line of their own.
            tracing::debug!(%peer, reason, "no registration");
            Failed(Outcome::Malformed)
        })?;
        // A cached claim needs no permit: otherwise a client with invented tokens would delay all
        // agents behind its address.
        let doubt = self.doubts.follow(&claim.registration.cluster);
        let standing = if let Some(credential) = self.judge.remembers(&claim, doubt.since()).await {
            Standing::Known(credential, doubt)
        } else {
            // Dropped, so that the `Doubt` made after the wait counts changes during the wait.
            drop(doubt);
            // Agents wait no longer.
            let credential = claim.credential(&self.hasher);
            Standing::Unknown(timeout(patience, self.judging.enter(peer.ip(), credential)).await.ok())
        };
        Ok((applicant, claim, standing))
    }

    async fn application(&self, stream: TcpStream, peer: SocketAddr) -> Result<(Applicant<Io>, Claim), String> {
        let accepted =
            self.tls.accept_with(LargeReads::new(stream), |tls| tls.set_buffer_limit(Some(Settings::TLS_BUFFER)));
        let stream = accepted.await.map_err(|error| format!("TLS: {}", words::io(&error)))?;
        let session = stream.get_ref().1;
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|der| der.clone().into_owned()).collect();
        let applicant = register::applicant(stream, self.settings.handshake_timeout).await;
        let applicant = applicant.map_err(|error| error.to_string())?;
        let claim = Claim::new(applicant.registration.clone(), &applicant.headers, peer, certificates);
        Ok((applicant, claim))
    }

    fn shed(&self, peer: SocketAddr) -> Failed {
        if let Some(suppressed) = self.sheds.due() {
            tracing::warn!(
                %peer, suppressed,
                "too many unregistered connections: closing the oldest of the address with the most"
            );
        }
        Failed(Outcome::Shed)
    }

    /// Releases the permit before the answer is sent, because a slow client may delay the answer at
    /// will.
    async fn judged(&self, claim: &Claim, standing: Standing<'_>) -> Result<(Credential, Doubt), Refused> {
        let room = match standing {
            Standing::Known(credential, doubt) => return Ok((credential, doubt)),
            Standing::Unknown(room) => room,
        };
        let Some(_room) = room else { return Err(Refused::late(self.settings.handshake_timeout)) };
        // Before the judgement, so that later changes cause a recheck.
        let doubt = self.doubts.follow(&claim.registration.cluster);
        let judged = timeout(JUDGEMENT, self.judge.judge(claim, doubt.since())).await;
        judged.unwrap_or_else(|_| Err(Refused::late(JUDGEMENT))).map(|credential| (credential, doubt))
    }

    async fn welcome(&self, applicant: Applicant<Io>) -> Result<Link, String> {
        let io = timeout(self.settings.handshake_timeout, applicant.welcome(&self.server)).await;
        let io = io.map_err(|_| "it did not read our answer".to_owned())?.map_err(|error| words::io(&error))?;
        Link::start(io, &self.settings, Hop::Agent).await.map_err(|error| error.to_string())
    }

    async fn turn_away(&self, applicant: Applicant<Io>, claim: &Claim, outcome: Outcome, message: String) -> Failed {
        let status = match outcome {
            Outcome::Draining => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        self.answer(applicant, claim, &Refused { status, message, why: String::new(), retry_after: Some(LATER) }).await;
        Failed(outcome)
    }

    async fn refuse(&self, applicant: Applicant<Io>, claim: &Claim, refused: &Refused) -> Failed {
        self.answer(applicant, claim, refused).await;
        Failed(refused.outcome())
    }

    async fn answer(&self, applicant: Applicant<Io>, claim: &Claim, refused: &Refused) {
        let registration = &claim.registration;
        if let Some(suppressed) = self.refusals.due() {
            tracing::warn!(
                cluster = %registration.cluster,
                agent = registration.agent,
                peer = %claim.peer.address(),
                status = refused.status.as_u16(),
                message = refused.message,
                why = refused.why,
                suppressed,
                "agent refused"
            );
        }
        // A client that does not read the answer loses the connection after the timeout, or to a
        // newer connection.
        let pending_permit = self.pending.enter(claim.peer.address().ip());
        let answer = applicant.refuse(refused.status, &refused.message, refused.retry_after);
        tokio::select! {
            _ = timeout(self.settings.handshake_timeout, answer) => {}
            () = pending_permit.given_away() => {}
        }
    }
}
