//! Why a cluster has not joined yet.

use hub::Cause;
use hub::client::HubClientError;

use super::certificate::Useless;
use super::state::StateError;

/// Why the cluster has not joined yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum JoinError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Client(#[from] HubClientError),
    #[error("the hub, {what}: {error}")]
    Hub {
        what: &'static str,
        #[source]
        error: Cause,
    },
    #[error("the member, {doing} --state-secret: {error}")]
    Secret {
        doing: &'static str,
        #[source]
        error: Cause,
    },
    #[error("the key of the certificate request: {0}")]
    Key(#[from] rcgen::Error),
    #[error(
        "{0} certificate requests of this cluster wait for a decision: approve or deny them, so that the agent can \
         create another"
    )]
    Outstanding(usize),
    #[error("the certificate request is no longer on the hub: making another")]
    Gone,
    #[error("the certificate that the hub issued cannot be used: {0}")]
    Useless(Useless),
    #[error("the certificate that the hub issued is not in the state directory any more")]
    Lost,
    #[error("the hub has a certificate request {0} that is for another key: making another")]
    Taken(String),
    #[error(
        "Secret {namespace}/{name} of the member does not belong to an agent of this cluster: give another name with \
         --state-secret, or delete it"
    )]
    NotOwn { namespace: String, name: String },
    #[error("the hub's Secret for --credential-service-account: {0}")]
    Credential(String),
    #[error("the member, for --credential-service-account: {0}")]
    Issued(String),
    #[error("the member, for --credential-service-account, {what}: {error}")]
    Account {
        what: &'static str,
        #[source]
        error: Cause,
    },
    #[error("the bootstrap kubeconfig names another hub")]
    OtherHub,
}
