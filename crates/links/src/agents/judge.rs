//! Authorizes an agent to link as a cluster. RBAC on the hub decides: `create
//! clustergateways/tunnel` with the cluster's name. Without a hub, the certificate's common name
//! decides.

mod refused;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::access::{Attributes, ResourceAttributes, Verb};
use api::ocm_agent::OcmAgent;
use api::{GROUP, VERSION};
use auth::{Auth, AuthenticationError, AuthorizationError, User};
use http::{HeaderMap, StatusCode};
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tunnel::ClusterName;

use self::refused::{busy, forbidden};
use super::claim::Claim;
use crate::registry::Credential;

pub use self::refused::Refused;
pub(super) use self::refused::not_asked;

/// Prefix of the common name of agents' certificates without a hub; the cluster's name follows.
const COMMON_NAME: &str = "system:tunnel-agent:";
/// Extra key whose value distinguishes a certificate (`X509SHA256=…`) from a token (`JTI=…`):
/// `CredentialIDKey` in `k8s.io/apiserver/pkg/authentication/user`.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// Group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";
/// Prefix of the groups of clusters' agents, with or without `system:` before it.
const CLUSTERS: &str = "open-cluster-management:";

/// Reviews of one agent's identity that may wait for the hub, as many as registrations of one
/// address are judged at a time: it may ask for any cluster, from any number of addresses.
const WAITING_OF_ONE: usize = 64;
/// Longest time the hub's word is kept, as API servers keep it.
const LONGEST_KEPT: Duration = Duration::from_secs(10);

/// Judges claims by the current authorities and the hub's current reviews.
#[derive(Debug)]
pub struct Judge {
    auth: Auth,
    /// Trusts the hub's own client CA, but only for agents of Open Cluster Management.
    of_hub: Option<Auth>,
    has_hub: bool,
    takes_certificates: bool,
}

/// The CAs of the agents' client certificates.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    /// A CA bundle, PEM.
    pub file: Option<PathBuf>,
    /// The client CA that the hub publishes, for agents of Open Cluster Management.
    pub of_hub: bool,
}

/// Result of checking a claim against the hub's client CA.
enum HubsWord {
    /// An agent of Open Cluster Management.
    Agent(Arc<User>),
    /// Not signed by it, or not for an agent.
    Other,
    /// The CA has never been read.
    Unknown,
}

// === impl Judge ===

impl Judge {
    pub fn new(
        authorities: Authorities,
        recheck: Duration,
        hub: Option<auth::HubClients>,
        runtime: &Handle,
        metrics: &mut MetricsRegistry,
    ) -> anyhow::Result<Self> {
        let Authorities { file, of_hub } = authorities;
        let (has_hub, takes_certificates) = (hub.is_some(), file.is_some());
        let metrics = auth::Metrics::register_named(metrics, "tunnel_server_agent");
        let of_hub = hub.clone().filter(|_| of_hub).map(|hub| {
            let config = auth::Config { skip_lookup: false, ..config(None, recheck) };
            Auth::build(&config, Some(hub), runtime, &metrics)
        });
        let of_hub = of_hub.transpose()?;
        let auth = Auth::build(&config(file, recheck), hub, runtime, &metrics)?;
        Ok(Self { auth, of_hub, has_hub, takes_certificates })
    }

    #[cfg(test)]
    pub fn with_reviews(recheck: Duration, reviews: Arc<dyn auth::Reviews>) -> Self {
        let metrics = auth::Metrics::register_named(&mut MetricsRegistry::default(), "tunnel_server_agent");
        let auth = Auth::with_reviews(&config(None, recheck), reviews, &Handle::current(), &metrics).expect("no files");
        Self { auth, of_hub: None, has_hub: true, takes_certificates: false }
    }

    /// Judges a claim now and returns its credential. Reviews of its rights from before `since` do
    /// not count.
    pub async fn judge(&self, claim: &Claim, since: Option<Instant>) -> Result<Credential, Refused> {
        let user = match self.agent_of_hub(claim).await {
            HubsWord::Agent(user) => user,
            HubsWord::Other => self.authenticated(claim).await?,
            // Certificates of the agents' own CA work without the hub's CA.
            HubsWord::Unknown => {
                let why = "the hub's client CA is not known yet: it could not be read from the hub";
                self.authenticated(claim).await.map_err(|_| not_asked(why.to_owned()))?
            }
        };
        let credential = Credential(user.name.as_str().into());
        if self.has_hub {
            self.permitted(user, &claim.registration.cluster, since).await?;
        } else {
            named_so(&user, &claim.registration.cluster)?;
        }
        Ok(credential)
    }

    /// Returns the credential of a valid claim without a call to the hub, if the cached results
    /// suffice.
    pub async fn remembers(&self, claim: &Claim, since: Option<Instant>) -> Option<Credential> {
        let stands = |user: Arc<User>| {
            let (credential, cluster) = (Credential(user.name.as_str().into()), &claim.registration.cluster);
            if self.has_hub {
                let user = without_system_groups(user, cluster);
                self.auth.authorizer.remembered(user, attributes(cluster), since)?;
            } else {
                named_so(&user, cluster).ok()?;
            }
            Some(credential)
        };
        match self.agent_of_hub(claim).await {
            HubsWord::Agent(user) => stands(user),
            _ => self.auth.authenticator.remembered(&claim.peer, &mut claim.credentials(), stands),
        }
    }

    async fn authenticated(&self, claim: &Claim) -> Result<Arc<User>, Refused> {
        let mut credentials = claim.credentials();
        let user = self.auth.authenticator.authenticate(&claim.peer, &mut credentials).await;
        user.map_err(|error| self.unknown(error))
    }

    /// The agent of Open Cluster Management that the hub signed the certificate for. Certificates
    /// that it signed for other users are no credential here.
    async fn agent_of_hub(&self, claim: &Claim) -> HubsWord {
        let Some(auth) = self.of_hub.as_ref().filter(|_| claim.is_by_certificate) else { return HubsWord::Other };
        // Only the CA matters here: the hub's front proxy settings may be broken.
        if !auth.authenticator.knows_client_authorities() {
            return HubsWord::Unknown;
        }
        let user = auth.authenticator.authenticate(&claim.peer_of_hub, &mut HeaderMap::new()).await.ok();
        let agent = user.and_then(|user| Some((OcmAgent::of_common_name(&user.name)?, user)));
        agent.map_or(HubsWord::Other, |(agent, user)| HubsWord::Agent(as_agent(user, &agent)))
    }

    async fn permitted(&self, user: Arc<User>, cluster: &ClusterName, since: Option<Instant>) -> Result<(), Refused> {
        let name = user.name.clone();
        let user = without_system_groups(user, cluster);
        match self.auth.authorizer.authorize_since(user, attributes(cluster), since).await {
            Ok(_) => Ok(()),
            Err(AuthorizationError::Forbidden { reason, .. }) => Err(forbidden(
                format!(
                    "user \"{name}\" may not link cluster \"{cluster}\": on the hub it needs \"create\" of \"clustergateways/tunnel\" \
                     in API group \"{GROUP}\" with the resource name \"{cluster}\", by a ClusterRole and a ClusterRoleBinding"
                ),
                reason,
            )),
            Err(AuthorizationError::Review(error)) => Err(not_asked(error.to_string())),
            Err(error @ AuthorizationError::Busy(_)) => Err(busy(error.to_string())),
        }
    }

    fn unknown(&self, error: AuthenticationError) -> Refused {
        let why = match error {
            AuthenticationError::Unauthorized { why } => why,
            AuthenticationError::Review(error) => return not_asked(error.to_string()),
            error @ AuthenticationError::Busy(_) => return busy(error.to_string()),
            // Of headers that claims do not carry.
            error @ (AuthenticationError::Forbidden { .. } | AuthenticationError::BadRequest(_)) => error.to_string(),
        };
        let good = match (self.has_hub, self.takes_certificates) {
            (true, false) if self.of_hub.is_some() => {
                "a valid ServiceAccount token of the hub is needed, or a certificate that it signed for an agent of \
                 Open Cluster Management"
            }
            (true, true) => {
                "a valid ServiceAccount token of the hub or a client certificate of the agents' CA is needed"
            }
            (true, false) => {
                "a valid ServiceAccount token of the hub is needed (client certificates are not accepted here)"
            }
            (false, _) => {
                "a valid client certificate of the agents' CA is needed (tokens are not accepted here: there is no hub)"
            }
        };
        Refused {
            status: StatusCode::UNAUTHORIZED,
            message: format!("not authenticated: {good}"),
            why,
            retry_after: None,
        }
    }
}

/// Of the groups that the hub signed for an agent, only that of its own cluster counts: a signer
/// that checks only common names must not let it link another cluster by a second organization.
fn as_agent(mut user: Arc<User>, agent: &OcmAgent) -> Arc<User> {
    let own = agent.organization();
    let counts = |group: &String| *group == own || group == AUTHENTICATED;
    if !user.groups.iter().all(counts) {
        Arc::make_mut(&mut user).groups.retain(counts);
    }
    user
}

/// Removes the groups of a certificate that only the hub may give. The agents' CA chooses a
/// certificate's groups, and RBAC allows members of `system:masters` every cluster. So groups with
/// `system:` do not count, nor do groups of clusters with or without `system:`, because an
/// acceptance binds both to the right to link. A token's groups come from the hub, so they stay.
///
/// The group of a cluster's Open Cluster Management agents stays if the certificate's common name
/// and the claim are of the same cluster: here it can only be used to link that cluster.
fn without_system_groups(mut user: Arc<User>, cluster: &ClusterName) -> Arc<User> {
    let certified = user.extra.get(CREDENTIAL_ID).is_some_and(|ids| ids.iter().any(|id| id.starts_with("X509SHA256=")));
    let agent = OcmAgent::of_common_name(&user.name).filter(|agent| agent.cluster == cluster.as_str());
    let agents = agent.map(|agent| agent.organization());
    let own = |group: &String| {
        let of_clusters = group.strip_prefix("system:").unwrap_or(group).starts_with(CLUSTERS);
        let full = if group.starts_with("system:") { group.clone() } else { format!("system:{group}") };
        group == AUTHENTICATED || Some(&full) == agents.as_ref() || !(group.starts_with("system:") || of_clusters)
    };
    if certified && !user.groups.iter().all(own) {
        Arc::make_mut(&mut user).groups.retain(own);
    }
    user
}

/// Every user is authenticated, each ServiceAccount is a user of its own (the agents of many
/// clusters may be accounts of one namespace), no group is above the hub's RBAC, and users of the
/// hub's own front proxy and CA mean nothing here.
///
/// Reviews are cached for less than the recheck interval, so that each recheck asks the hub. The
/// links of one agent, which come together, share one review.
fn config(client_ca_file: Option<PathBuf>, recheck: Duration) -> auth::Config {
    let mut config = auth::Config { anonymous: false, client_ca_file, skip_lookup: true, ..auth::Config::default() };
    let kept = (recheck / 2).min(LONGEST_KEPT);
    config.token.cache_ttl = kept;
    config.authorization.authorized_ttl = kept;
    config.authorization.unauthorized_ttl = kept;
    config.authorization.allow_masters = false;
    config.authorization.always_allow_paths.clear();
    config.reviews = auth::ReviewConfig { waiting_of_one: WAITING_OF_ONE, accounts_apart: true };
    config
}

fn named_so(user: &User, cluster: &ClusterName) -> Result<(), Refused> {
    if user.name.strip_prefix(COMMON_NAME) == Some(cluster.as_str()) {
        return Ok(());
    }
    Err(forbidden(
        format!(
            "a certificate for \"{}\" may not link cluster \"{cluster}\": without a hub its common name must be \
             \"{COMMON_NAME}{cluster}\"",
            user.name
        ),
        String::new(),
    ))
}

fn attributes(cluster: &ClusterName) -> Attributes {
    Attributes::Resource(ResourceAttributes {
        verb: Verb::Create,
        group: GROUP.into(),
        version: VERSION.into(),
        resource: "clustergateways".into(),
        subresource: "tunnel".into(),
        namespace: None,
        name: Some(cluster.as_str().into()),
        field_selector: None,
        label_selector: None,
    })
}
