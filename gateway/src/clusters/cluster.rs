//! One usable member cluster: its specification, its credential, and its upstream.

use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::secret::{ClusterSpec, ConstEndpoint, Credential, Endpoint};
use net::tls::keypair::KeyPair;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use super::ClusterError;
use super::common::Common;
use super::credential::{CredentialLease, MemberCredential, bearer};
use super::dynamic::{self, Dynamic, NotIssued};
use super::rights::Rights;
use super::target::{endpoint, target};
use crate::exchange::OwnRules;
use crate::limits::Load;
use crate::metrics::ClusterMetrics;
use crate::upstream::Upstream;

/// A cluster as one generation of its Secret describes it. Immutable.
pub struct Cluster {
    spec: ClusterSpec,
    endpoint: Endpoint,
    /// The credential for requests, unless a program issues it.
    credential: MemberCredential,
    dynamic: Option<Dynamic>,
    metrics: Arc<ClusterMetrics>,
    load: Arc<Load>,
    identity_rules: OwnRules,
    rights: Arc<Rights>,
    /// The end of the registration: the same for all generations of one Secret.
    ended: CancellationToken,
}

// === impl Cluster ===

impl Cluster {
    /// Makes a cluster of `spec`. Keeps the connections of `previous` if endpoint, trust and client
    /// certificate are the same: a rotated token needs no new handshake. Counts in `metrics`, and
    /// ends with `ended`.
    pub fn new(
        spec: ClusterSpec,
        previous: Option<&Self>,
        (metrics, ended): (Arc<ClusterMetrics>, CancellationToken),
        common: &Common,
    ) -> Result<Self, ClusterError> {
        let authorization = match &spec.credential {
            Credential::Token(token) => Some(bearer(token.expose_secret())?),
            Credential::X509 { .. } | Credential::Exec(_) => None,
        };
        let load = common.loads.of(spec.name.as_str());
        let located = endpoint(&spec);
        let upstream = match previous {
            Some(previous) if connects_alike(&previous.spec, &spec) => Arc::clone(&previous.credential.upstream),
            _ => connect(&spec, &located, identity(&spec)?.as_ref(), common, &metrics, &ended)?,
        };
        let dynamic = dynamic::config(&spec).map(|config| {
            let made = Dynamic::new(&spec, &located, config, common, &upstream, &metrics);
            made.continuing(previous.and_then(|previous| previous.dynamic.as_ref()))
        });
        let identity_rules = identity_rules(previous, &spec, common);
        let rights = rights(previous, &spec);
        let endpoint = located.url.clone();
        Ok(Self {
            spec,
            endpoint,
            credential: MemberCredential { authorization, upstream },
            dynamic,
            metrics,
            load,
            identity_rules,
            rights,
            ended,
        })
    }

    pub fn name(&self) -> &ClusterName {
        &self.spec.name
    }

    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The URL to which proxied paths are appended.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Connections with the Secret's own client certificate, or none. Requests use those of
    /// [`Cluster::acquire`].
    pub fn upstream(&self) -> &Upstream {
        &self.credential.upstream
    }

    /// Returns the credential for a request: at once if the Secret has it, or otherwise perhaps
    /// after a program has issued it.
    pub async fn acquire(&self) -> Result<CredentialLease<'_>, NotIssued> {
        let Some(dynamic) = &self.dynamic else { return Ok(CredentialLease::Fixed(&self.credential)) };
        if let Some(current) = dynamic.current() {
            return Ok(CredentialLease::Issued(current));
        }
        // Boxed: rare, and too large for every request's future.
        Box::pin(dynamic.acquire(&|pair| self.connect(dynamic, pair))).await.map(CredentialLease::Issued)
    }

    /// The member rejected `lease`. Returns a replacement, or `None` if there is none.
    pub async fn renew(&self, lease: &CredentialLease<'_>) -> Result<Option<CredentialLease<'_>>, NotIssued> {
        match (&self.dynamic, lease) {
            (Some(dynamic), CredentialLease::Issued(used)) => {
                let renewed = dynamic.renew(used, &|pair| self.connect(dynamic, pair)).await?;
                Ok(renewed.map(CredentialLease::Issued))
            }
            _ => Ok(None),
        }
    }

    fn connect(&self, dynamic: &Dynamic, pair: &KeyPair) -> Result<Arc<Upstream>, ClusterError> {
        connect(&self.spec, &endpoint(&self.spec), Some(pair), dynamic.common(), &self.metrics, &self.ended)
    }

    /// The end of this registration. All connections to the member end with it, with their watches,
    /// uploads and upgrades.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub fn metrics(&self) -> &Arc<ClusterMetrics> {
        &self.metrics
    }

    /// The requests in flight at this cluster, for its limits.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
    }

    pub fn identity_rules(&self) -> &OwnRules {
        &self.identity_rules
    }

    /// The users that the credential may impersonate, as far as they are known.
    pub fn rights(&self) -> &Arc<Rights> {
        &self.rights
    }
}

/// Whether connections made for `a` serve `b`, because everything that they depend on is the same.
pub(super) fn connects_alike(a: &ClusterSpec, b: &ClusterSpec) -> bool {
    let same_certificate = match (&a.credential, &b.credential) {
        (Credential::Token(_) | Credential::Exec(_), Credential::Token(_) | Credential::Exec(_)) => true,
        (
            Credential::X509 { certificate: one, private_key: key },
            Credential::X509 { certificate: other, private_key: other_key },
        ) => one == other && key.expose_secret() == other_key.expose_secret(),
        _ => false,
    };
    same_certificate && a.endpoint == b.endpoint && a.trust == b.trust && a.tls_server_name == b.tls_server_name
}

fn identity_rules(previous: Option<&Cluster>, spec: &ClusterSpec, common: &Common) -> OwnRules {
    match previous {
        Some(previous) if previous.spec.identity_rules == spec.identity_rules => previous.identity_rules.clone(),
        _ => common.annotations.compile(spec.name.as_str(), spec.identity_rules.as_deref()),
    }
}

/// Kept for the same credential, however often its Secret changes otherwise.
fn rights(previous: Option<&Cluster>, spec: &ClusterSpec) -> Arc<Rights> {
    match previous {
        Some(previous) if acts_alike(&previous.spec, spec) => Arc::clone(&previous.rights),
        _ => Arc::default(),
    }
}

/// Whether the member sees the same credential in requests for `a` and for `b`. Unknown for a
/// credential that a program issues.
fn acts_alike(a: &ClusterSpec, b: &ClusterSpec) -> bool {
    let same_credential = match (&a.credential, &b.credential) {
        (Credential::Token(one), Credential::Token(other)) => one.expose_secret() == other.expose_secret(),
        (Credential::X509 { .. }, Credential::X509 { .. }) => true, // the same, if connects_alike
        _ => false,
    };
    same_credential && connects_alike(a, b)
}

fn connect(
    spec: &ClusterSpec,
    located: &ConstEndpoint,
    identity: Option<&KeyPair>,
    common: &Common,
    metrics: &Arc<ClusterMetrics>,
    ended: &CancellationToken,
) -> Result<Arc<Upstream>, ClusterError> {
    let target = target(spec, located, identity, common, metrics, ended)?;
    Ok(Arc::new(Upstream::new(target, common.cores, metrics)))
}

fn identity(spec: &ClusterSpec) -> Result<Option<KeyPair>, ClusterError> {
    match &spec.credential {
        Credential::X509 { certificate, private_key } => {
            Ok(Some(KeyPair::from_pem(certificate, private_key.expose_secret())?))
        }
        Credential::Token(_) | Credential::Exec(_) => Ok(None),
    }
}
