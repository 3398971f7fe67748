//! Builds what authenticates and authorizes from its configuration.

use std::path::Path;
use std::sync::Arc;

use kube::Client;
use net::follow::{File, LONGEST};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::BuildError;
use crate::authorize::{AlwaysAllowed, Authorizer, Decider, HubAuthorizer, Lifetimes};
use crate::ca_bundle::CaBundle;
use crate::config::{Config, FrontProxyConfig};
use crate::config_map::{ConfigMapSource, Parts};
use crate::identity_headers::IdentityHeaders;
use crate::metrics::Metrics;
use crate::review::Reviewer;
use crate::standalone::{Policy, Standalone};
use crate::token::{HubTokens, TokenFile, Tokens};
use crate::trust::{FrontProxySettings, Trust};

/// Collects the parts while they are built.
pub(super) struct Builder<'a> {
    pub(super) runtime: &'a Handle,
    pub(super) metrics: &'a Metrics,
    pub(super) workers: JoinSet<()>,
    pub(super) trust: Arc<Trust>,
}

// === impl Builder ===

impl Builder<'_> {
    pub(super) fn client_ca_file(&mut self, path: Option<&Path>) -> Result<(), BuildError> {
        let Some(path) = path else { return Ok(()) };
        let (file, pem) = open(path)?;
        let broken = |source| BuildError::CaBundle { path: path.to_owned(), source };
        self.trust.publish_clients(Arc::new(CaBundle::parse(&pem).map_err(broken)?));
        let trust = Arc::clone(&self.trust);
        let metrics = self.metrics.clone();
        let apply = move |pem: &[u8]| CaBundle::parse(pem).map(|bundle| trust.publish_clients(Arc::new(bundle)));
        let following = file.follow("CA of clients", apply, move || metrics.reload_failed());
        self.workers.spawn_on(following, self.runtime);
        Ok(())
    }

    pub(super) fn front_proxy_file(&mut self, config: &FrontProxyConfig) -> Result<(), BuildError> {
        let Some(path) = &config.ca_file else { return Ok(()) };
        let (file, pem) = open(path)?;
        let broken = |source| BuildError::CaBundle { path: path.clone(), source };
        let settings = FrontProxySettings {
            authorities: Arc::new(CaBundle::parse(&pem).map_err(broken)?),
            allowed_names: config.allowed_names.clone(),
            headers: IdentityHeaders::new(
                &config.username_headers,
                &config.uid_headers,
                &config.group_headers,
                &config.extra_header_prefixes,
            ),
        };
        self.trust.publish_front_proxy(settings.clone());
        let trust = Arc::clone(&self.trust);
        let publish = move |bundle| {
            let authorities = Arc::new(bundle);
            trust.publish_front_proxy(FrontProxySettings { authorities, ..settings.clone() });
        };
        self.follow("CA of the front proxy", file, move |pem| CaBundle::parse(pem).map(&publish));
        Ok(())
    }

    pub(super) fn config_map(&mut self, config: &Config, hub: Option<Client>) -> watch::Receiver<bool> {
        let parts =
            Parts { front_proxy: config.front_proxy.ca_file.is_none(), clients: config.client_ca_file.is_none() };
        let needed = !config.skip_lookup && (parts.front_proxy || parts.clients);
        let (sender, loaded) = watch::channel(false);
        match hub.filter(|_| needed) {
            Some(client) => {
                let source = ConfigMapSource::new(Arc::clone(&self.trust), parts, sender)
                    .tolerating_failure(config.tolerate_lookup_failure);
                self.workers.spawn_on(source.follow(client), self.runtime);
            }
            None => drop(sender.send_replace(true)),
        }
        loaded
    }

    pub(super) fn tokens(&mut self, config: &Config, reviewer: Option<Arc<Reviewer>>) -> Result<Tokens, BuildError> {
        let (config, sharing) = (&config.token, config.reviews);
        let mut tokens = Tokens { file: None, hub: None };
        if let Some(path) = &config.file {
            let (file, csv) = open(path)?;
            let broken = |source| BuildError::TokenFile { path: path.clone(), source };
            let known = TokenFile::parse(&csv).map_err(broken)?;
            let live = known.clone();
            self.follow("tokens", file, move |csv| live.replace(csv));
            tokens.file = Some(known);
        }
        let (lifetime, runtime) = (config.cache_ttl, self.runtime);
        tokens.hub =
            reviewer.map(|reviewer| HubTokens::new(reviewer, lifetime, sharing, runtime, self.metrics.clone()));
        Ok(tokens)
    }

    pub(super) fn authorizer(
        &mut self,
        config: &Config,
        reviewer: Option<Arc<Reviewer>>,
    ) -> Result<Authorizer, BuildError> {
        let (config, sharing) = (&config.authorization, config.reviews);
        let always_allowed = AlwaysAllowed::new(config.always_allow_paths.iter().map(String::as_str))?;
        let lifetimes = Lifetimes { allowed: config.authorized_ttl, denied: config.unauthorized_ttl };
        let decider = match reviewer {
            _ if config.allow_everything => Decider::Nobody,
            Some(reviewer) => {
                let hub = HubAuthorizer::new(reviewer, lifetimes, sharing, self.runtime, self.metrics.clone());
                Decider::Hub(Box::new(hub))
            }
            None => Decider::Standalone(self.standalone(config.standalone_policy.as_deref())?),
        };
        Ok(Authorizer { masters: config.allow_masters, always_allowed, decider, metrics: self.metrics.clone() })
    }

    fn standalone(&mut self, path: Option<&Path>) -> Result<Standalone, BuildError> {
        let Some(path) = path else { return Ok(Standalone::new(Policy::default())) };
        let (file, yaml) = open(path)?;
        let broken = |source| BuildError::Policy { path: path.to_owned(), source };
        let standalone = Standalone::new(Policy::parse(&yaml).map_err(broken)?);
        let live = standalone.clone();
        self.follow("policy", file, move |yaml| Policy::parse(yaml).map(|policy| live.replace(policy)));
        Ok(standalone)
    }

    fn follow<E: std::error::Error + Send + Sync + 'static>(
        &mut self,
        what: &'static str,
        file: File,
        apply: impl FnMut(&[u8]) -> Result<(), E> + Send + 'static,
    ) {
        self.workers.spawn_on(file.follow(what, apply, || {}), self.runtime);
    }
}

fn open(path: &Path) -> Result<(File, Vec<u8>), BuildError> {
    File::open(path, LONGEST).map_err(|source| BuildError::Read { path: path.to_owned(), source })
}
