//! A sample member cluster: recorded documents in this process that look like Kubernetes to
//! kubectl.
//!
//! It serves discovery, namespaces, nodes and their leases, pods, (no) events and container logs
//! over TLS to callers with its token; lists come as JSON, as Tables or as metadata alone, watches
//! show a pod that comes and goes every few seconds, logs grow by a line a second. It runs nothing,
//! so there is no exec, and stores nothing but a few pods that are applied to it: these count as
//! running at once. It can be killed, and comes back where it was, with what it stored.

mod answer;
mod cluster;
mod documents;
mod query;
mod refusal;
mod selection;
mod streams;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use kit::{
    member::{FakeMember, MemberOptions},
    pki::Authority,
};
use parking_lot::Mutex;
use secrecy::SecretString;
use time::OffsetDateTime;
use tokio::{sync::watch, task::JoinSet, time::MissedTickBehavior};

pub use self::cluster::{BERLIN, LIMA, OSAKA, Profile};
use self::{answer::Answering, cluster::Cluster};

/// The length of a beat when time passes by itself.
const BEAT: Duration = Duration::from_secs(1);

/// How time passes in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One beat a second.
    Seconds,
    /// Only when [`Member::beat`] is called: for tests.
    Manual,
}

/// A running sample member. Dropping it ends it, and what is open breaks off.
#[derive(Debug)]
pub struct Member {
    profile: &'static Profile,
    /// None while it is dead.
    server: Mutex<Option<FakeMember>>,
    address: SocketAddr,
    authority: Arc<Authority>,
    answering: Arc<Answering>,
    ca_pem: String,
    /// Seconds that passed. Streams end when it is gone.
    seconds: watch::Sender<u64>,
    _heart: JoinSet<()>,
}

// === impl Member ===

impl Member {
    /// Starts a member on a free port of 127.0.0.1, with a certificate authority of its own. Panics
    /// if there is none.
    pub async fn start(profile: &'static Profile, token: SecretString, pace: Pace) -> Self {
        let authority = Arc::new(Authority::new("member-ca"));
        let seconds = watch::Sender::new(0);
        let cluster = Cluster::new(profile, OffsetDateTime::now_utc());
        let answering = Arc::new(Answering::new(cluster, token, seconds.subscribe()));
        let server = serve((Ipv4Addr::LOCALHOST, 0).into(), &authority, &answering).await;
        let mut heart = JoinSet::new();
        if pace == Pace::Seconds {
            heart.spawn(keep_beating(seconds.clone()));
        }
        let (address, ca_pem) = (server.address(), server.ca_pem());
        let server = Mutex::new(Some(server));
        Self { profile, server, address, authority, answering, ca_pem, seconds, _heart: heart }
    }

    /// Ends its API server as a crash does: what is open breaks off, and nothing listens any more.
    pub fn kill(&self) {
        drop(self.server.lock().take());
    }

    /// Starts it again where it was, after [`Member::kill`].
    pub async fn restore(&self) {
        let server = serve(self.address, &self.authority, &self.answering).await;
        *self.server.lock() = Some(server);
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate authority that a client has to trust, PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The token that a client has to bring.
    pub fn token(&self) -> &SecretString {
        &self.answering.token
    }

    /// The cluster's name.
    pub fn name(&self) -> &'static str {
        self.profile.name
    }

    /// `gitVersion` of its API server.
    pub fn version(&self) -> &str {
        self.answering.cluster.version()
    }

    /// Lets a second pass.
    pub fn beat(&self) {
        self.seconds.send_modify(|seconds| *seconds += 1);
    }
}

async fn serve(address: SocketAddr, authority: &Arc<Authority>, answering: &Arc<Answering>) -> FakeMember {
    let options = MemberOptions { address, authority: Some(Arc::clone(authority)), ..MemberOptions::default() };
    let server = FakeMember::start(options).await;
    let answering = Arc::clone(answering);
    server.on_any(move |request| answering.answer(request));
    server
}

async fn keep_beating(seconds: watch::Sender<u64>) {
    let mut beats = tokio::time::interval(BEAT);
    // Skipped, not caught up: after a suspended laptop the past need not be replayed.
    beats.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        beats.tick().await;
        seconds.send_modify(|seconds| *seconds += 1);
    }
}

#[cfg(test)]
mod tests;
