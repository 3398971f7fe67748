//! One usable member cluster: its specification, the headers its credential needs, and the way to
//! it.

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
    /// What requests go out with, unless a program issues it.
    credential: MemberCredential,
    dynamic: Option<Dynamic>,
    metrics: Arc<ClusterMetrics>,
    load: Arc<Load>,
    identity_rules: OwnRules,
    rights: Arc<Rights>,
    /// The end of the registration: all generations of one Secret have the same.
    ended: CancellationToken,
}

// === impl Cluster ===

impl Cluster {
    /// Makes a cluster of `spec`. Connections of `previous` are kept if endpoint, trust and client
    /// certificate are the same: a rotated token needs no new handshake. Both count for `metrics`,
    /// and end with `ended`.
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
        let identity_rules = match previous {
            Some(previous) if previous.spec.identity_rules == spec.identity_rules => previous.identity_rules.clone(),
            _ => common.annotations.compile(spec.name.as_str(), spec.identity_rules.as_deref()),
        };
        // Of the same credential the same is known, however often its Secret is touched.
        let rights = match previous {
            Some(previous) if acts_alike(&previous.spec, &spec) => Arc::clone(&previous.rights),
            _ => Arc::default(),
        };
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

    /// The URL that proxied paths are appended to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Connections that present no client certificate but the Secret's own. Requests go over those
    /// of [`Cluster::acquire`].
    pub fn upstream(&self) -> &Upstream {
        &self.credential.upstream
    }

    /// What a request goes out with. Comes at once where the Secret holds the credential; a program
    /// may have to issue it.
    pub async fn acquire(&self) -> Result<CredentialLease<'_>, NotIssued> {
        let Some(dynamic) = &self.dynamic else { return Ok(CredentialLease::Fixed(&self.credential)) };
        if let Some(current) = dynamic.current() {
            return Ok(CredentialLease::Issued(current));
        }
        // Rare, and not to be carried around by every request.
        Box::pin(dynamic.acquire(&|pair| self.connect(dynamic, pair))).await.map(CredentialLease::Issued)
    }

    /// The member rejected `lease`: what to use in its place, `None` if nothing better is to be
    /// had.
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

    /// The end of this registration, with which all connections to the member end, and the watches,
    /// uploads and upgrades on them.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub fn metrics(&self) -> &Arc<ClusterMetrics> {
        &self.metrics
    }

    /// Its requests in flight, for limits on it.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
    }

    pub fn identity_rules(&self) -> &OwnRules {
        &self.identity_rules
    }

    /// The users that the credential may impersonate, as far as that was asked.
    pub fn rights(&self) -> &Arc<Rights> {
        &self.rights
    }
}

/// Whether connections made for `a` serve `b`: all that a connection depends on is the same.
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

/// Whether the member takes requests of `b` for those of the credential of `a`. Of one that a
/// program issues that is not known.
fn acts_alike(a: &ClusterSpec, b: &ClusterSpec) -> bool {
    let same_credential = match (&a.credential, &b.credential) {
        (Credential::Token(one), Credential::Token(other)) => one.expose_secret() == other.expose_secret(),
        (Credential::X509 { .. }, Credential::X509 { .. }) => true, // the same, if the connections are
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
