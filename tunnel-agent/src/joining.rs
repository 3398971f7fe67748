//! Joins a hub as Open Cluster Management's agents do: announces the cluster, requests a
//! certificate, and waits for an administrator to approve both. Then the certificate is the agent's
//! credential.
//! <https://github.com/open-cluster-management-io/ocm/tree/v1.2.0/pkg/registration/spoke>

mod asking;
mod bootstrap;
mod certificate;
mod cluster;
mod dialer;
mod error;
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
use api::hub_status::HubStatus;
use hub::client::{HubClientError, handed_over};
use hub::through::{Dial, client_through};
use hub::{Cause, Requests};
use net::backoff::Backoff;
use net::follow::Complaints;
use tokio::time::{Instant, sleep};

use self::bootstrap::Bootstrap;
use self::certificate::Certificate;
use self::dialer::{HubWay, through};
use self::error::JoinError;
use self::keeping::{Keeping, Over};
use self::secret::StateSecret;
use self::state::{KUBECONFIG, StateDirectory};
use crate::args::{JoinConfig, Member};
use crate::credentials::Credentials;
use crate::metrics::Metrics;
use crate::outbound::Outbound;

pub use self::standing::{SharedStanding, Standing};

/// This program's name in requests to hubs.
const PROGRAM: &str = concat!("tunnel-agent/", env!("CARGO_PKG_VERSION"));
/// If a certificate was in use for less than this, the next attempt waits.
const SHORT: Duration = Duration::from_mins(1);

/// Interval of checks whether the hub again knows a certificate that it did not know.
const BELIEVED: Duration = Duration::from_secs(30);

/// Joins a hub, and stays joined.
pub struct Joining {
    cluster: String,
    config: JoinConfig,
    state: StateDirectory,
    /// How hubs are dialled.
    dial: Dial,
    credentials: Arc<Credentials>,
    metrics: Metrics,
    shared: SharedStanding,
    secret: Option<StateSecret>,
    timing: Timing,
}

/// Durations that tests shorten.
#[derive(Debug, Clone, Copy)]
struct Timing {
    /// How long the hub may answer 401 before the cluster joins again. A hub that is being set up
    /// answers so for minutes, and joining needs a person.
    unbelieved: Duration,
    /// Longest interval between two reads of the `ManagedCluster`.
    look: Duration,
    /// How long the hub may answer that there is no such cluster before it is announced again: just
    /// after the first acceptance, the hub is still writing.
    unannounced: Duration,
}

/// The hub, as this cluster's agent uses it.
#[derive(Clone)]
struct Joined {
    hub: Requests,
    way: HubWay,
    certificate: Certificate,
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
        let state = StateDirectory::open(&config.state_dir).context("--state-dir")?;
        let dial = through(Arc::clone(outbound));
        let (cluster, shared) = (cluster.to_owned(), SharedStanding::default());
        let timing = Timing::default();
        Ok(Self { cluster, config, state, dial, credentials, metrics, shared, secret: None, timing })
    }

    /// The cluster's standing with the hub.
    pub fn standing(&self) -> SharedStanding {
        self.shared.clone()
    }

    /// Runs forever.
    pub async fn run(mut self) {
        let member = self.needed_member().await;
        let secret = self.config.state_secret.take();
        let new = |(member, secret)| StateSecret::new(member, secret, self.cluster.clone());
        self.secret = member.clone().zip(secret).map(new);
        self.restored().await;
        let (mut unbelieved, mut short) = (None, 0);
        loop {
            let joined = self.joined(unbelieved.as_ref()).await;
            let began = Instant::now();
            tracing::info!(
                hub = joined.way.url(),
                agent = joined.certificate.agent.agent,
                "this cluster has a certificate of the hub"
            );
            let (over, joined) = Box::pin(Keeping::new(&self, member.as_ref(), joined).run()).await;
            self.refused(None);
            self.metrics.joins_again(over.as_str());
            tracing::warn!(reason = over.as_str(), "joining again, with the bootstrap kubeconfig");
            unbelieved = (over == Over::Unbelieved).then_some(joined);
            short = if began.elapsed() < SHORT { short + 1 } else { 0 };
            if short > 0 {
                sleep(Backoff::HUB.wait(short - 1)).await;
            }
        }
    }

    /// Runs before anything else: the agent must not request again what earlier runs may have left
    /// in the Secret.
    async fn restored(&self) {
        let Some(secret) = &self.secret else { return };
        let (mut failures, mut complaints) = (0, Complaints::default());
        while let Err(error) = secret.restore(&self.state).await {
            if let Some(reason) = complaints.new_cause(&error) {
                tracing::warn!(reason, "the state of earlier runs cannot be read yet, trying again");
            }
            sleep(Backoff::HUB.wait(failures)).await;
            failures += 1;
        }
    }

    /// Saves the state in the Secret, which outlives the directory, if there is one.
    async fn save(&self) -> Result<(), JoinError> {
        match &self.secret {
            Some(secret) => secret.save(&self.state).await,
            None => Ok(()),
        }
    }

    /// The existing certificate, or a new one; `unbelieved` is one that the hub does not know. That
    /// one stays in place, and is tried for as long as the way to another fails or waits.
    async fn joined(&self, unbelieved: Option<&Joined>) -> Joined {
        let Some(old) = unbelieved else { return self.tried(None).await };
        tokio::select! {
            joined = self.tried(Some(old)) => joined,
            joined = self.believed(old) => {
                tracing::info!("the hub accepts the certificate again: using it");
                // The request would need a person's approval, and the next renewal would reuse it.
                if let Err(error) = self.state.forget_request() {
                    tracing::warn!(reason = %error, "cannot forget a certificate request that is no longer needed");
                }
                joined
            }
        }
    }

    async fn tried(&self, unbelieved: Option<&Joined>) -> Joined {
        let (mut failures, mut complaints) = (0, Complaints::default());
        loop {
            let error = match self.join(unbelieved).await {
                Ok(joined) => return joined,
                Err(error) => error,
            };
            if let Some(reason) = complaints.new_cause(&error) {
                tracing::warn!(reason, "this cluster has not joined, trying again");
            }
            sleep(Backoff::HUB.wait(failures)).await;
            failures += 1;
        }
    }

    async fn join(&self, unbelieved: Option<&Joined>) -> Result<Joined, JoinError> {
        let is_other = |joined: &Joined| unbelieved.is_none_or(|old| joined.certificate != old.certificate);
        match self.kept().await?.filter(is_other) {
            Some(joined) => Ok(joined),
            None => self.bootstrapped().await,
        }
    }

    async fn bootstrapped(&self) -> Result<Joined, JoinError> {
        self.say(Standing::Asking);
        Bootstrap::new(self).await?.join().await?;
        self.kept().await?.ok_or(JoinError::Lost)
    }

    /// Completes when the intended hub again knows a certificate that is still the kept one.
    async fn believed(&self, old: &Joined) -> Joined {
        loop {
            sleep(BELIEVED.min(self.timing.look)).await;
            let Ok(Some(kept)) = self.kept().await else { continue };
            if kept.certificate != old.certificate {
                continue;
            }
            match kept.hub.get(&cluster::path(&self.cluster)).await {
                Ok(_) | Err(Cause::Status(HubStatus { code: 403 | 404, .. })) => return kept,
                Err(_) => {}
            }
        }
    }

    fn say(&self, standing: Standing) {
        let before = self.shared.say(standing);
        self.metrics.accepted.set((standing == Standing::Accepted).into());
        match standing {
            Standing::Accepted if !matches!(before, Standing::Accepted | Standing::Silent) => {
                tracing::info!(cluster = self.cluster, "the hub has accepted this cluster");
                // Links that were refused until now may succeed.
                self.credentials.try_again();
            }
            Standing::Denied if before != Standing::Denied => {
                let missing = cluster::how_to_accept(&self.cluster);
                tracing::warn!(cluster = self.cluster, missing, "the hub does not accept this cluster");
            }
            _ => {}
        }
    }

    /// Reports that the hub refuses to renew the certificate, or no longer refuses.
    fn refused(&self, why: Option<String>) {
        self.metrics.renewal_refused.set(why.is_some().into());
        if self.shared.trouble(why.clone())
            && let Some(reason) = why
        {
            tracing::warn!(reason, "the certificate of this cluster is not renewed");
        }
    }

    /// The certificate of earlier runs, if it is for the intended hub, and still valid.
    async fn kept(&self) -> Result<Option<Joined>, JoinError> {
        let Some(certificate) = self.state.certificate(&self.cluster)? else { return Ok(None) };
        if certificate.is_over_at(SystemTime::now()) {
            tracing::warn!("the certificate has expired: asking for another with the bootstrap kubeconfig");
            return Ok(None);
        }
        let kubeconfig = self.state.path(KUBECONFIG);
        let mut own = HubWay::read(&kubeconfig).await?;
        // Without a bootstrap kubeconfig, the kept one stays in use.
        if let Some(meant) = self.meant().await {
            if meant.url() != own.url() {
                tracing::warn!(hub = meant.url(), "the bootstrap kubeconfig names another hub: joining that one");
                return Ok(None);
            }
            own = meant;
        }
        if own.address.is_insecure || !own.url().starts_with("https://") {
            tracing::warn!("the hub of the kept kubeconfig is not verified: asking with the bootstrap kubeconfig");
            return Ok(None);
        }
        // Others may have written to this file, so only its address counts.
        self.state.write_kubeconfig(&own)?;
        let hub = self.requests(kubeconfig).await?;
        Ok(Some(Joined { hub, way: own, certificate }))
    }

    /// The hub that the bootstrap kubeconfig names. None if there is no such kubeconfig, or not one
    /// that may be used: then nothing is known about another hub.
    async fn meant(&self) -> Option<HubWay> {
        handed_over(&self.config.bootstrap).ok()?;
        HubWay::read(&self.config.bootstrap).await.ok()
    }

    async fn requests(&self, kubeconfig: PathBuf) -> Result<Requests, HubClientError> {
        let client = client_through(Some(&kubeconfig), PROGRAM, Arc::clone(&self.dial)).await?;
        Ok(Requests::new(client))
    }

    /// A client of the member. Tries until there is one if the Secret or the account needs it,
    /// because the kubeconfig, or the pod's token, may appear a moment late.
    async fn needed_member(&self) -> Option<Requests> {
        let is_needed = self.config.state_secret.is_some() || self.config.credential.is_some();
        let (mut failures, mut complaints) = (0, Complaints::default());
        loop {
            let error = match self.member().await {
                Ok(member) => return member,
                Err(error) => error,
            };
            if !is_needed {
                tracing::warn!(reason = %error, "the member's version and resources are not reported to the hub");
                return None;
            }
            if let Some(reason) = complaints.new_cause(&error) {
                tracing::warn!(
                    reason,
                    "cannot set up a client for this cluster, which --state-secret and --credential-service-account \
                     need: trying again"
                );
            }
            sleep(Backoff::HUB.wait(failures)).await;
            failures += 1;
        }
    }

    /// A client of the member's own API server, never through a proxy.
    async fn member(&self) -> Result<Option<Requests>, HubClientError> {
        let kubeconfig = match &self.config.member {
            Member::Kubeconfig(path) => Some(path.as_path()),
            Member::InCluster => None,
            Member::Unknown => return Ok(None),
        };
        let dial = through(Arc::new(Outbound::direct()));
        Ok(Some(Requests::new(client_through(kubeconfig, PROGRAM, dial).await?)))
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        if self.config.is_for_one_run {
            self.state.discard();
        }
    }
}

// === impl Timing ===

impl Default for Timing {
    fn default() -> Self {
        Self { unbelieved: Duration::from_mins(5), look: Duration::from_hours(1), unannounced: Duration::from_mins(5) }
    }
}

#[cfg(test)]
mod tests;
