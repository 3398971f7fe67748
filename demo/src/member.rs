//! A sample member cluster: an API server in this process that looks like Kubernetes to kubectl.
//!
//! It serves discovery, namespaces, nodes and their leases, pods, (no) events and container logs over TLS to whoever
//! brings its token; lists come as JSON or as Tables, watches show a pod that comes and goes every few seconds, logs
//! grow by a line a second. It stores nothing and runs nothing: there is no exec.

mod clock;
mod documents;
mod handler;
mod http;
mod kind;
mod life;
mod log;
mod model;
mod negotiate;
mod object;
mod render;
mod request;
mod sample;
mod selector;
mod status;
mod table;
mod watch;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use kit::pki::{self, Authority, Leaf};
use parking_lot::Mutex;
use secrecy::SecretString;
use time::OffsetDateTime;
use tokio::{net::TcpListener, task::JoinSet, time::MissedTickBehavior};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use self::sample::{BERLIN, LIMA, OSAKA, Profile};
use self::{clock::Clock, handler::Shared, life::Life, watch::Hub};

/// The length of a beat when time passes by itself.
const BEAT: Duration = Duration::from_secs(1);
/// Beats between two steps in the life of a member.
const BEATS_PER_STEP: u64 = 2;

/// How time passes in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One beat a second.
    Seconds,
    /// Only when [`Member::beat`] is called: for tests.
    Manual,
}

/// A running sample member. Dropping it ends it at once; [`Member::stop`] lets answers finish.
#[derive(Debug)]
pub struct Member {
    address: SocketAddr,
    ca_pem: String,
    shared: Arc<Shared>,
    heart: Arc<Heart>,
    tasks: JoinSet<()>,
}

/// What moves a member.
#[derive(Debug)]
struct Heart {
    shared: Arc<Shared>,
    state: Mutex<(u64, Life)>,
}

// === impl Member ===

impl Member {
    /// Starts a member on a free port of 127.0.0.1, with a certificate authority of its own.
    pub async fn start(profile: &'static Profile, token: SecretString, pace: Pace) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let authority = Authority::new(&format!("{}-ca", profile.name));
        let certificate = authority.issue(&Leaf::server("kube-apiserver").san("kubernetes.default.svc"));
        let tls = TlsAcceptor::from(pki::server_config(&certificate, pki::ClientAuth::None, pki::ALPN_BOTH));

        let clock = Clock::starting_at(OffsetDateTime::now_utc());
        let now = clock.now();
        let hub = Arc::new(Hub::new(profile.populate(now)));
        let shared = Arc::new(Shared { profile, token, hub, clock, stop: CancellationToken::new() });
        let heart = Arc::new(Heart { shared: Arc::clone(&shared), state: Mutex::new((0, Life::new(profile, now))) });

        let mut tasks = JoinSet::new();
        tasks.spawn(http::serve(listener, tls, Arc::clone(&shared)));
        if pace == Pace::Seconds {
            tasks.spawn(keep_beating(Arc::clone(&heart)));
        }
        Ok(Self { address, ca_pem: authority.root_pem(), shared, heart, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate authority that a client has to trust, PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The token that a client has to bring.
    pub fn token(&self) -> &SecretString {
        &self.shared.token
    }

    /// Which sample cluster this is.
    pub fn profile(&self) -> &'static Profile {
        self.shared.profile
    }

    /// Lets a second pass.
    pub fn beat(&self) {
        self.heart.beat();
    }

    /// Ends streams, lets other answers finish for a moment, and closes the listener.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

// === impl Heart ===

impl Heart {
    fn beat(&self) {
        let mut state = self.state.lock();
        let (beats, life) = &mut *state;
        *beats += 1;
        self.shared.clock.beat();
        if beats.is_multiple_of(BEATS_PER_STEP) {
            let now = self.shared.clock.now();
            self.shared.hub.update(|model| life.step(model, now));
        }
    }
}

async fn keep_beating(heart: Arc<Heart>) {
    let mut seconds = tokio::time::interval(BEAT);
    // Skipped, not caught up: after a suspended laptop the past need not be replayed.
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = heart.shared.stop.cancelled() => return,
            _ = seconds.tick() => heart.beat(),
        }
    }
}

#[cfg(test)]
mod tests;
