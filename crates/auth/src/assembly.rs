//! Builds an [`Authenticator`] and an [`Authorizer`] from settings, with the tasks that keep them
//! current.
//!
//! The source of the CAs follows `k8s.io/apiserver/pkg/server/options/authentication.go`: a file
//! given by flag replaces the hub's ConfigMap for that part. Without files and with a hub, the
//! ConfigMap is followed.

mod builder;

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use net::words;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::builder::Builder;
use crate::authenticate::Authenticator;
use crate::authorize::{Authorizer, PathError};
use crate::ca_bundle::CaBundleError;
use crate::clock::Clock;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::review::{HubClients, HubReviews, Reviewer, Reviews};
use crate::standalone::PolicyError;
use crate::token::TokenFileError;
use crate::user::User;

/// The working parts. A drop ends the background tasks; the parts then keep their last state.
#[derive(Debug)]
pub struct Auth {
    pub authenticator: Arc<Authenticator>,
    pub authorizer: Arc<Authorizer>,
    /// Becomes true once the trusted CAs are known. Do not report ready before: the hub itself
    /// would count as a stranger.
    pub loaded: watch::Receiver<bool>,
    /// Tasks that re-read files and watch the `ConfigMap`.
    _workers: JoinSet<()>,
}

/// Why a setting does not work. The first such setting is reported.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("cannot read {path}: {}", words::io(.source))]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {source}")]
    CaBundle { path: PathBuf, source: CaBundleError },
    #[error("{path}: {source}")]
    TokenFile { path: PathBuf, source: TokenFileError },
    #[error("{path}: {source}")]
    Policy { path: PathBuf, source: PolicyError },
    #[error(transparent)]
    Path(#[from] PathError),
}

// === impl Auth ===

impl Auth {
    /// Builds all parts and starts the background tasks on `runtime`, which must also drive the
    /// clients of `hub`. Without a hub, tokens come only from the token file and permissions only
    /// from the policy file.
    pub fn build(
        config: &Config,
        hub: Option<HubClients>,
        runtime: &Handle,
        metrics: &Metrics,
    ) -> Result<Self, BuildError> {
        let client = hub.as_ref().map(|hub| hub.authentication.clone());
        let reviews = hub.map(|hub| Arc::new(HubReviews::new(hub)) as Arc<dyn Reviews>);
        Self::assemble(config, client, reviews, runtime, metrics)
    }

    /// The same as [`Auth::build`] without the hub's ConfigMap, and with reviews by `reviews`: for
    /// programs with another authority than a hub, and for tests.
    pub fn with_reviews(
        config: &Config,
        reviews: Arc<dyn Reviews>,
        runtime: &Handle,
        metrics: &Metrics,
    ) -> Result<Self, BuildError> {
        Self::assemble(config, None, Some(reviews), runtime, metrics)
    }

    fn assemble(
        config: &Config,
        hub: Option<Client>,
        reviews: Option<Arc<dyn Reviews>>,
        runtime: &Handle,
        metrics: &Metrics,
    ) -> Result<Self, BuildError> {
        let mut builder = Builder { runtime, metrics, workers: JoinSet::new(), trust: Arc::default() };
        builder.client_ca_file(config.client_ca_file.as_deref())?;
        builder.front_proxy_file(&config.front_proxy)?;
        let loaded = builder.config_map(config, hub);
        let reviewer = reviews.map(|reviews| Arc::new(Reviewer::new(reviews, metrics.clone())));
        let tokens = builder.tokens(config, reviewer.clone())?;
        let authorizer = Arc::new(builder.authorizer(config, reviewer)?);
        let authenticator = Arc::new(Authenticator {
            trust: builder.trust,
            tokens,
            anonymous: config.anonymous.then(|| Arc::new(User::anonymous())),
            authorizer: Arc::clone(&authorizer),
            clock: Clock::default(),
            metrics: metrics.clone(),
        });
        Ok(Self { authenticator, authorizer, loaded, _workers: builder.workers })
    }
}

#[cfg(test)]
mod tests;
