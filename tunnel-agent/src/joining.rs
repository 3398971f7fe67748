//! Joining a hub as Open Cluster Management's agents do: the cluster is announced, a certificate is
//! asked for, and both wait for an administrator. Then the certificate is the agent's credential.
//! <https://github.com/open-cluster-management-io/ocm/tree/v1.2.0/pkg/registration/spoke>

mod bootstrap;
mod certificate;
mod cluster;
mod dial;
mod keeping;
mod member;
mod request;
mod secret;
mod standing;
mod state;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use hub::client::{Address, HubClientError, address, handed_over};
use hub::through::{Dial, client_through};
use hub::{RequestError, Requests};
use net::backoff::Backoff;
use net::follow::Complaints;
use tokio::time::sleep;

use self::bootstrap::Bootstrap;
use self::certificate::Certificate;
use self::keeping::Keeping;
use self::secret::StateSecret;
use self::state::{KUBECONFIG, State, StateError};
use crate::args::{JoinConfig, Member};
use crate::credentials::Credentials;
use crate::metrics::Metrics;
use crate::outbound::Outbound;

pub use self::standing::{Standing, Told};

/// How we call ourselves to hubs.
const PROGRAM: &str = concat!("tunnel-agent/", env!("CARGO_PKG_VERSION"));
/// After a failure.
const AGAIN: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1));

/// Joins, and stays joined.
pub struct Joining {
    cluster: String,
    config: JoinConfig,
    state: State,
    /// The way to hubs.
    dial: Dial,
    credentials: Arc<Credentials>,
    metrics: Metrics,
    told: Told,
    secret: Option<StateSecret>,
}

/// The hub as this cluster's agent sees it.
struct Joined {
    hub: Requests,
    address: Address,
    certificate: Certificate,
}

/// Why the cluster has not joined yet.
#[derive(Debug, thiserror::Error)]
enum JoinError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Client(#[from] HubClientError),
    #[error("the hub, {what}: {error}")]
    Hub { what: &'static str, error: RequestError },
    #[error("the member, {doing} --state-secret: {error}")]
    Secret { doing: &'static str, error: RequestError },
    #[error("the key of the certificate request: {0}")]
    Key(#[from] rcgen::Error),
    #[error(
        "{0} certificate requests of this cluster wait for somebody's decision: approve or deny them, so that another \
         can be made"
    )]
    Outstanding(usize),
    #[error("the certificate request is no longer on the hub: making another")]
    Gone,
    #[error("the certificate that the hub issued cannot be used: it is not this agent's, or has expired")]
    Useless,
    #[error("the bootstrap kubeconfig names another hub")]
    OtherHub,
}

// === impl Joining ===

impl Joining {
    /// Creates the state directory.
    pub fn new(
        cluster: &str,
        config: JoinConfig,
        outbound: &Arc<Outbound>,
        credentials: Arc<Credentials>,
        metrics: Metrics,
    ) -> anyhow::Result<Self> {
        let state = State::open(&config.state_dir).context("--state-dir")?;
        let dial = dial::through(Arc::clone(outbound));
        let (cluster, told) = (cluster.to_owned(), Told::default());
        Ok(Self { cluster, config, state, dial, credentials, metrics, told, secret: None })
    }

    /// How the cluster stands with the hub.
    pub fn told(&self) -> Told {
        self.told.clone()
    }

    /// For ever.
    pub async fn run(mut self) {
        let member = self.member().await;
        let secret = self.config.state_secret.take();
        self.secret = member.clone().zip(secret).map(|(member, secret)| StateSecret::new(member, secret));
        self.restored().await;
        loop {
            let joined = self.joined().await;
            tracing::info!(
                hub = joined.address.url,
                agent = joined.certificate.agent.agent,
                "this cluster has a certificate of the hub"
            );
            Keeping::new(&self, member.as_ref(), joined).run().await;
        }
    }

    /// Before anything else: what is not known to be missing is not asked for again.
    async fn restored(&self) {
        let Some(secret) = &self.secret else { return };
        let (mut failures, mut complaints) = (0, Complaints::default());
        while let Err(error) = secret.restore(&self.state).await {
            if let Some(reason) = complaints.new_cause(&error) {
                tracing::warn!(reason, "what earlier runs left is not known yet, trying again");
            }
            sleep(AGAIN.wait(failures)).await;
            failures += 1;
        }
    }

    /// Keeps the state where it outlives the directory, if that is wanted.
    async fn save(&self) -> Result<(), JoinError> {
        match &self.secret {
            Some(secret) => secret.save(&self.state).await,
            None => Ok(()),
        }
    }

    /// The certificate there is, or a new one.
    async fn joined(&self) -> Joined {
        let (mut failures, mut complaints) = (0, Complaints::default());
        loop {
            let error = match self.join().await {
                Ok(joined) => return joined,
                Err(error) => error,
            };
            if let Some(reason) = complaints.new_cause(&error) {
                tracing::warn!(reason, "this cluster has not joined, trying again");
            }
            sleep(AGAIN.wait(failures)).await;
            failures += 1;
        }
    }

    async fn join(&self) -> Result<Joined, JoinError> {
        if let Some(joined) = self.kept().await? {
            return Ok(joined);
        }
        self.told.say(Standing::Asking);
        Bootstrap::new(self).await?.join().await?;
        self.kept().await?.ok_or(JoinError::Useless)
    }

    /// What earlier runs left, if it is for the hub that is meant, and still valid.
    async fn kept(&self) -> Result<Option<Joined>, JoinError> {
        let Some(certificate) = self.state.certificate(&self.cluster)? else { return Ok(None) };
        if certificate.is_over_at(SystemTime::now()) {
            tracing::warn!("the certificate has expired: asking for another with the bootstrap kubeconfig");
            return Ok(None);
        }
        let kubeconfig = self.state.path(KUBECONFIG);
        let mut own = address(Some(&kubeconfig)).await?;
        // Without a bootstrap kubeconfig, what there is goes on.
        if handed_over(&self.config.bootstrap).is_ok()
            && let Ok(meant) = address(Some(&self.config.bootstrap)).await
        {
            if meant.url != own.url {
                tracing::warn!(hub = meant.url, "the bootstrap kubeconfig names another hub: joining that one");
                return Ok(None);
            }
            own = meant;
        }
        if own.is_insecure || !own.url.starts_with("https://") {
            tracing::warn!("the hub of the kept kubeconfig is not verified: asking with the bootstrap kubeconfig");
            return Ok(None);
        }
        // Of what others may have written there, only the address counts.
        self.state.write_kubeconfig(&own)?;
        let hub = self.requests(kubeconfig).await?;
        Ok(Some(Joined { hub, address: own, certificate }))
    }

    async fn requests(&self, kubeconfig: PathBuf) -> Result<Requests, HubClientError> {
        let client = client_through(Some(&kubeconfig), PROGRAM, Arc::clone(&self.dial)).await?;
        Ok(Requests::new(client))
    }

    /// The member's own API server, never through a proxy.
    async fn member(&self) -> Option<Requests> {
        let kubeconfig = match &self.config.member {
            Member::Kubeconfig(path) => Some(path.as_path()),
            Member::InCluster => None,
            Member::Unknown => return None,
        };
        let dial = dial::through(Arc::new(Outbound::direct()));
        match client_through(kubeconfig, PROGRAM, dial).await {
            Ok(client) => Some(Requests::new(client)),
            Err(error) => {
                tracing::warn!(reason = %error, "the hub is not told of the member's version and resources");
                None
            }
        }
    }
}
