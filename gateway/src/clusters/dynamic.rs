//! Clusters whose credential a program issues: makes headers and connections for it.
//!
//! A token is a header on the cluster's usual connections. A client certificate needs its own
//! connections. They are made once per certificate, and the previous certificate's connections end
//! with their last requests.

use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::secret::{ClusterSpec, ConstEndpoint, Credential, ExecConfig, ProxyUrl, Trust};
use arc_swap::ArcSwapOption;
use exec_credential::{ClusterInfo, ExecError, Issued, Observer, Request, Source};
use net::tls::keypair::KeyPair;
use parking_lot::Mutex;
use secrecy::ExposeSecret;

use super::ClusterError;
use super::common::Common;
use super::credential::{IssuedCredential, MemberCredential, bearer};
use crate::metrics::ClusterMetrics;
use crate::upstream::Upstream;

/// The changing credential of one cluster.
pub struct Dynamic {
    source: Source,
    common: Common,
    /// Connections without a client certificate.
    upstream: Arc<Upstream>,
    metrics: Arc<ClusterMetrics>,
    current: ArcSwapOption<IssuedCredential>,
    /// Held while a credential is prepared, so that its connections are made once.
    renewing: Mutex<()>,
}

/// Makes an upstream that presents a client certificate.
pub type Connect<'a> = &'a (dyn Fn(&KeyPair) -> Result<Arc<Upstream>, ClusterError> + Send + Sync);

/// Why there is no credential. The texts contain no secret.
#[derive(Debug, thiserror::Error)]
pub enum NotIssued {
    #[error(transparent)]
    Plugin(#[from] Arc<ExecError>),
    #[error("the issued credential cannot be used: {0}")]
    Unusable(#[from] ClusterError),
}

/// The cluster as its program receives it, with the values that client-go has for this cluster in a
/// kubeconfig.
fn cluster_info(spec: &ClusterSpec, endpoint: &ConstEndpoint) -> ClusterInfo {
    let (certificate_authority, insecure_skip_tls_verify) = match &spec.trust {
        Trust::Bundle(pem) => (Some(pem.clone()), false),
        Trust::SystemRoots => (None, false),
        Trust::Insecure => (None, true),
    };
    ClusterInfo {
        server: endpoint.url.to_string(),
        tls_server_name: spec.tls_server_name.clone(),
        insecure_skip_tls_verify,
        certificate_authority,
        proxy_url: endpoint.proxy.as_ref().map(ProxyUrl::exposed),
    }
}

// === impl Dynamic ===

impl Dynamic {
    /// Does not run the program yet.
    pub fn new(
        spec: &ClusterSpec,
        endpoint: &ConstEndpoint,
        config: &ExecConfig,
        common: &Common,
        upstream: &Arc<Upstream>,
        metrics: &Arc<ClusterMetrics>,
    ) -> Self {
        let request = Request::new(config.clone(), || cluster_info(spec, endpoint));
        if let Err(error) = common.issuing.plugins.check(&request) {
            tracing::warn!(cluster = %spec.name, %error, "no credential will be issued");
        }
        Self {
            source: common.issuing.credentials.source(request, observer(&spec.name, metrics)),
            common: common.clone(),
            upstream: Arc::clone(upstream),
            metrics: Arc::clone(metrics),
            current: ArcSwapOption::empty(),
            renewing: Mutex::default(),
        }
    }

    /// Keeps the credential of `previous`, and so its connections, if program and upstream are the
    /// same.
    #[must_use]
    pub fn continuing(self, previous: Option<&Self>) -> Self {
        if let Some(previous) = previous
            .filter(|previous| self.source.is_same(&previous.source) && Arc::ptr_eq(&self.upstream, &previous.upstream))
        {
            self.current.store(previous.current.load_full());
        }
        self
    }

    pub fn common(&self) -> &Common {
        &self.common
    }

    /// The credential, if it needs no renewal.
    pub fn current(&self) -> Option<Arc<IssuedCredential>> {
        self.current.load_full().filter(|current| self.source.is_current(&current.issued))
    }

    /// The current credential. Waits only if there is none.
    pub async fn acquire(&self, connect: Connect<'_>) -> Result<Arc<IssuedCredential>, NotIssued> {
        let issued = self.source.get().await?;
        Ok(self.prepare(issued, connect)?)
    }

    /// The member rejected `used`. Returns a replacement, or `None` if there is none yet.
    pub async fn renew(
        &self,
        used: &IssuedCredential,
        connect: Connect<'_>,
    ) -> Result<Option<Arc<IssuedCredential>>, NotIssued> {
        match self.source.renew(&used.issued).await? {
            Some(issued) => Ok(Some(self.prepare(issued, connect)?)),
            None => Ok(None),
        }
    }

    fn prepare(&self, issued: Arc<Issued>, connect: Connect<'_>) -> Result<Arc<IssuedCredential>, ClusterError> {
        let _renewing = self.renewing.lock();
        let current = self.current.load_full();
        if let Some(current) = current.as_ref().filter(|current| Arc::ptr_eq(&current.issued, &issued)) {
            return Ok(Arc::clone(current));
        }
        let credential = issued.credential();
        let authorization = credential.token.as_ref().map(|token| bearer(token.expose_secret())).transpose()?;
        let upstream = match &credential.certificate {
            None => Arc::clone(&self.upstream),
            Some(pair) => match current.filter(|current| current.presents(&issued)) {
                Some(current) => Arc::clone(&current.ready.upstream),
                None => connect(pair)?,
            },
        };
        self.metrics.credential_expires(credential.expires);
        let made = Arc::new(IssuedCredential { issued, ready: MemberCredential { authorization, upstream } });
        self.current.store(Some(Arc::clone(&made)));
        Ok(made)
    }
}

fn observer(cluster: &ClusterName, metrics: &Arc<ClusterMetrics>) -> Observer {
    let (cluster, metrics) = (cluster.clone(), Arc::clone(metrics));
    Arc::new(move |outcome| match outcome {
        Ok(_) => {
            tracing::debug!(%cluster, "credential issued");
            metrics.credential_run("success");
        }
        Err(error) => {
            tracing::warn!(%cluster, %error, "failed to issue credential from external command");
            metrics.credential_run(error.kind());
        }
    })
}

/// The program that issues the cluster's credential, if any.
pub fn config(spec: &ClusterSpec) -> Option<&ExecConfig> {
    match &spec.credential {
        Credential::Exec(config) => Some(config),
        Credential::Token(_) | Credential::X509 { .. } => None,
    }
}
