//! Which certificate requests (`certificates.k8s.io/v1`) come from agents of Open Cluster
//! Management, and which of these may be approved without a person.
//!
//! A certificate signed for such a request is a cluster's identity on the hub. So a request is
//! recognized only if it is exactly what an agent writes. Names are compared whole, because `c1`
//! must not get a certificate as `c10`. People decide on requests that are not recognized.
//! <https://github.com/open-cluster-management-io/ocm/tree/main/pkg/registration>

mod request;

use api::ocm_agent::OcmAgent;

use self::request::Subject;

pub use self::request::Mistake;
pub(crate) use api::ocm_agent::{ALL_CLUSTERS, PREFIX, is_cluster as is_label};
pub use api::ocm_agent::{CLUSTER_LABEL, SIGNER};

const REQUIRED_USAGES: [&str; 2] = ["digital signature", "client auth"];
const OPTIONAL_USAGE: &str = "key encipherment";

/// A request, as its object contains it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `spec.signerName`.
    pub signer: &'a str,
    /// The value of [`CLUSTER_LABEL`].
    pub label: Option<&'a str>,
    /// `spec.request`, decoded: PEM.
    pub pem: &'a [u8],
    /// `spec.usages`.
    pub usages: &'a [String],
}

/// A request of a cluster's agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognized {
    pub cluster: String,
    pub agent: String,
}

/// Why a request is not recognized. Its sender chose its text, so none of it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unrecognized {
    #[error("spec.signerName is not {SIGNER}")]
    Signer,
    #[error("the label {CLUSTER_LABEL} is missing, or is not the cluster of the request")]
    Label,
    #[error("spec.usages are not \"digital signature\" and \"client auth\", with or without \"key encipherment\"")]
    Usages,
    #[error("spec.request: {0}")]
    Request(#[from] Mistake),
    #[error("the common name is not {PREFIX}<cluster>:<agent>")]
    CommonName,
    #[error(
        "the organizations are not {PREFIX}<cluster>, with or without {ALL_CLUSTERS}, of the cluster in the common name"
    )]
    Organizations,
}

/// The sender of a request.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// `spec.username`: the user that the hub authenticated.
    pub user: &'a str,
    /// The `spec.hubAcceptsClient` of the cluster in the request.
    pub is_accepted: bool,
    /// Users whose requests for a first certificate are approved without a person.
    pub trusted: &'a [String],
}

/// The decision about a recognized request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// An agent renews its own certificate: approved if the hub's review also allows it the verb
    /// `renew`.
    Renewal,
    /// A first certificate, for a user that is trusted to join clusters.
    FirstJoin,
    /// A person decides.
    Person,
}

// === impl Request ===

impl Request<'_> {
    /// The cluster and agent of the request, if it is exactly what an agent writes.
    pub fn recognize(&self) -> Result<Recognized, Unrecognized> {
        if self.signer != SIGNER {
            return Err(Unrecognized::Signer);
        }
        if !are_usages(self.usages) {
            return Err(Unrecognized::Usages);
        }
        let subject = request::subject(self.pem)?;
        let OcmAgent { cluster, agent } =
            OcmAgent::of_common_name(&subject.common_name).ok_or(Unrecognized::CommonName)?;
        let recognized = Recognized { cluster, agent };
        if !are_organizations(&subject, &recognized.cluster) {
            return Err(Unrecognized::Organizations);
        }
        if self.label != Some(&recognized.cluster) {
            return Err(Unrecognized::Label);
        }
        Ok(recognized)
    }
}

/// Whether a user has an agent's certificate.
pub fn is_agent(user: &str) -> bool {
    user.starts_with(PREFIX)
}

/// All required usages, each once, and no unknown one.
fn are_usages(usages: &[String]) -> bool {
    let mut usages: Vec<_> = usages.iter().map(String::as_str).filter(|usage| *usage != OPTIONAL_USAGE).collect();
    usages.sort_unstable();
    let mut required = REQUIRED_USAGES;
    required.sort_unstable();
    usages == required
}

fn are_organizations(subject: &Subject, cluster: &str) -> bool {
    let own = format!("{PREFIX}{cluster}");
    let mut organizations: Vec<_> = subject.organizations.iter().map(String::as_str).collect();
    organizations.sort_unstable();
    let mut both = [&*own, ALL_CLUSTERS];
    both.sort_unstable();
    // For a cluster called "managed-clusters", both would be the same organization.
    own != ALL_CLUSTERS && (organizations == [&*own] || organizations == both)
}

// === impl Recognized ===

impl Recognized {
    /// Decides by the sender of the request. It never denies: only a person does.
    pub fn judge(&self, requester: Requester<'_>) -> Judgement {
        if requester.user == format!("{PREFIX}{}:{}", self.cluster, self.agent) {
            return if requester.is_accepted { Judgement::Renewal } else { Judgement::Person };
        }
        if requester.trusted.iter().any(|trusted| trusted == requester.user) {
            return Judgement::FirstJoin;
        }
        Judgement::Person
    }
}

#[cfg(test)]
mod tests;
