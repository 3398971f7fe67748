//! A request to write a cluster's health: what it contains, whether it fits the current object, and
//! what the Secret becomes.
//!
//! Only `status` counts in the object that was sent or that a patch makes. The identity and the
//! version are checked as in `k8s.io/apiserver/pkg/endpoints/handlers/{update,patch}.go`.

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::API_VERSION;
use crate::cluster_gateway::{ClusterGateway, Credentials, KIND, RESOURCE};
use crate::cluster_name::ClusterName;
use crate::go_text;
use crate::health::Health;
use crate::hub_object::or_empty;
use crate::object::Document;
use crate::patch::{Patch, PatchError};
use crate::secret::ClusterSpec;
use crate::status::{Details, Reason, Status};

/// Most operations in a JSON patch. The type has two fields that a client can change.
const MOST_OPERATIONS: usize = 100;
/// Longest patch, in bytes. As values in memory it is thirty times as large.
pub const LONGEST_PATCH: usize = 64 << 10;

/// The change that a body asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A whole object. Only the fields that count are kept.
    Update(Sent),
    /// Strategic merge patches are equal to merge patches here, because the type has no lists.
    Patch(Patch),
}

/// The health to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthUpdate {
    pub health: Health,
    /// Whether the caller named the current version, so that another write in between must make
    /// this one fail.
    pub pinned: bool,
}

/// Why nothing is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the body is not valid JSON of a {KIND}")]
    Json,
    #[error("the body must be a {KIND} of {API_VERSION}")]
    Type,
    #[error("name must be provided")]
    NoName,
    #[error("the name of the object ({0}) does not match the name on the URL ({1})")]
    Name(String, ClusterName),
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// The version is not that of the current object.
    #[error(
        "Operation cannot be fulfilled on clustergateways.cluster.core.oam.dev \"{0}\": the object has been modified; please apply \
         your changes to the latest version and try again"
    )]
    Version(ClusterName),
    /// The uid is not that of the current object.
    #[error(
        "Operation cannot be fulfilled on clustergateways.cluster.core.oam.dev \"{0}\": the UID is that of another object of this \
         name"
    )]
    Uid(ClusterName),
}

/// The fields that count of the object sent. Other fields are not parsed into values, which would
/// take many times their length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sent {
    kind: String,
    api_version: String,
    #[serde(deserialize_with = "or_empty")]
    metadata: SentMeta,
    #[serde(deserialize_with = "or_empty")]
    status: Health,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SentMeta {
    name: String,
    uid: String,
    resource_version: String,
}

// === impl Change ===

impl Change {
    pub fn update(body: &[u8]) -> Result<Self, Refused> {
        // serde would accept an array as the fields in order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(Refused::Json);
        }
        serde_json::from_slice(body).map(Self::Update).map_err(|_| Refused::Json)
    }

    pub fn merge(body: &[u8]) -> Result<Self, Refused> {
        Ok(Self::Patch(Patch::merge(body)?))
    }

    pub fn operations(body: &[u8]) -> Result<Self, Refused> {
        Ok(Self::Patch(Patch::operations(body, MOST_OPERATIONS)?))
    }

    /// The update that this change asks for, on the current `cluster`.
    pub fn wanted(&self, cluster: &ClusterSpec) -> Result<HealthUpdate, Refused> {
        let object = match self {
            Self::Update(sent) => {
                sent.check(cluster)?;
                let pinned = !sent.metadata.resource_version.is_empty();
                return Ok(HealthUpdate { health: sent.status.clone(), pinned });
            }
            Self::Patch(patch) => patch.patched(current(cluster))?,
        };
        let sent: Sent = serde_json::from_value(object).map_err(|_| Refused::Json)?;
        sent.check(cluster)?;
        // A patch keeps the current version unless it names another, which was checked.
        Ok(HealthUpdate { health: sent.status, pinned: false })
    }
}

/// The object that a patch applies to: as readers see it, with the reported health.
fn current(cluster: &ClusterSpec) -> Value {
    let object = ClusterGateway::new(cluster, Health::of(cluster), Credentials::Redacted);
    serde_json::to_value(Document::new(&object, true)).unwrap_or_default()
}

// === impl Sent ===

impl Sent {
    fn check(&self, cluster: &ClusterSpec) -> Result<(), Refused> {
        if self.kind != KIND || self.api_version != API_VERSION {
            return Err(Refused::Type);
        }
        let SentMeta { name, uid, resource_version } = &self.metadata;
        if name.is_empty() {
            return Err(Refused::NoName);
        }
        if name != cluster.name.as_str() {
            return Err(Refused::Name(name.clone(), cluster.name.clone()));
        }
        if !uid.is_empty() && *uid != cluster.uid {
            return Err(Refused::Uid(cluster.name.clone()));
        }
        if !resource_version.is_empty() && *resource_version != cluster.resource_version {
            return Err(Refused::Version(cluster.name.clone()));
        }
        Ok(())
    }
}

// === impl Refused ===

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Version(name) | Refused::Uid(name) => Self::new(StatusCode::CONFLICT, Reason::Conflict, message)
                .with_details(Details {
                    name: name.to_string().into(),
                    group: crate::GROUP.into(),
                    kind: RESOURCE.into(),
                    ..Details::default()
                }),
            Refused::Patch(refused) => refused.into(),
            _ => Self::bad_request(message),
        }
    }
}

/// `NewUnsupportedMediaTypeError`. `accepted` is a list of media types, separated by `", "`.
pub fn unsupported(accepted: &str) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        go_text::html_escaped(accepted)
    );
    Status::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::UnsupportedMediaType, message)
}

#[cfg(test)]
mod tests;
