//! The one writer of cluster Secrets: server-side apply without force, and deletion of exactly the
//! Secret that was judged.
//!
//! Fields that somebody else has set are theirs. A name that was free when it was judged may be a
//! person's by the time the write arrives, and apply would add to their Secret: the answer shows
//! it, and what was added is taken out again.

use std::time::Duration;

use api::secret::ClusterSecret;
use hub::Cause;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::core::{PartialObjectMeta, Status};
use kube::{Api, Client};
use register::claims::Object;
pub use register::claims::SOURCE_LABEL;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::calls::{CONFLICT, MANAGER, NOT_FOUND, deleting, is};
use crate::term::{NotLeading, within};

/// Annotation: `group/Kind/namespace/name` of the object.
pub const OBJECT_ANNOTATION: &str = "cluster.core.oam.dev/source-object";
pub const UID_ANNOTATION: &str = "cluster.core.oam.dev/source-uid";
/// Annotation: `register::fingerprint` of what was written.
pub const HASH_ANNOTATION: &str = "cluster.core.oam.dev/source-hash";

/// Metadata of a cluster Secret.
pub type Meta = PartialObjectMeta<Secret>;

/// A registration to write.
pub struct Wanted<'a> {
    pub name: &'a str,
    pub object: &'a Object,
    pub uid: &'a str,
    pub hash: &'a str,
    pub secret: &'a ClusterSecret,
}

/// Why a Secret was not written or removed. Nothing of its content is in these texts.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(
        "another field manager has set fields of the Secret: {0}; remove them, or the Secret, to let it follow its source"
    )]
    Conflict(String),
    /// By the time of the write, the Secret was not the one that was judged.
    #[error("the Secret changed in the meantime")]
    Taken,
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error("the hub did not answer in time")]
    Timeout,
    #[error("the gateway could not use it: {0}")]
    Unusable(#[from] api::secret::SecretError),
    #[error("{}", Cause::from(.0))]
    Hub(#[source] kube::Error),
}

/// Secrets of the namespace that holds clusters.
#[derive(Clone)]
pub struct Secrets {
    api: Api<Secret>,
    namespace: String,
}

// === impl Secrets ===

impl Secrets {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    /// Of all Secrets of the namespace, their metadata.
    pub fn metadata(&self) -> Api<Meta> {
        Api::namespaced(self.api.clone().into_client(), &self.namespace)
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Writes a Secret; `uid` is that of the one which is there, if one is. `term` is for how long
    /// we lead.
    pub async fn write(&self, wanted: &Wanted<'_>, uid: Option<&str>, term: Duration) -> Result<Meta, WriteError> {
        let mut document = wanted.secret.document(Some(&self.namespace), wanted.name)?;
        mark(&mut document, wanted);
        if let Some(uid) = uid {
            // Of another uid it is another Secret, perhaps a person's: the hub answers 409.
            document["metadata"]["uid"] = uid.into();
        }
        let began = Instant::now();
        let written = self.apply(wanted.name, &document, term).await?;
        if uid.is_none() && is_shared(&written) {
            let nothing = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": wanted.name, "namespace": self.namespace, "uid": written.metadata.uid}});
            self.apply(wanted.name, &nothing, term.saturating_sub(began.elapsed())).await?;
            return Err(WriteError::Taken);
        }
        Ok(written)
    }

    async fn apply(&self, name: &str, document: &Value, term: Duration) -> Result<Meta, WriteError> {
        let parameters = PatchParams::apply(MANAGER);
        // The answer is metadata: what was sent need not come back.
        let patch = Patch::Apply(document);
        let answered = timeout(within(term)?, self.api.patch_metadata(name, &parameters, &patch)).await;
        answered.map_err(|_| WriteError::Timeout)?.map_err(WriteError::from)
    }

    /// Removes the Secret that was judged, and no later one of its name. One that is gone already
    /// is removed.
    pub async fn remove(&self, name: &str, (uid, version): (&str, &str), term: Duration) -> Result<(), WriteError> {
        let parameters = deleting(uid, Some(version));
        match timeout(within(term)?, self.api.delete(name, &parameters)).await.map_err(|_| WriteError::Timeout)? {
            Ok(_) => Ok(()),
            Err(error) if is(&error, NOT_FOUND) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Says where it comes from.
fn mark(document: &mut Value, wanted: &Wanted<'_>) {
    let metadata = &mut document["metadata"];
    metadata["labels"][SOURCE_LABEL] = wanted.object.source.into();
    metadata["annotations"][OBJECT_ANNOTATION] = wanted.object.reference.as_str().into();
    metadata["annotations"][UID_ANNOTATION] = wanted.uid.into();
    metadata["annotations"][HASH_ANNOTATION] = wanted.hash.into();
}

/// Whether somebody else has fields of a Secret that is said to be new.
fn is_shared(meta: &Meta) -> bool {
    let managers = meta.metadata.managed_fields.iter().flatten();
    managers.filter_map(|entry| entry.manager.as_deref()).any(|manager| manager != MANAGER)
}

/// Whether apply found another owner of fields, rather than another object.
pub fn is_of_fields(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}

// === impl WriteError ===

impl WriteError {
    /// What the hub answered, if that is all there is to tell.
    pub fn hub(&self) -> Option<&kube::Error> {
        match self {
            Self::Hub(error) => Some(error),
            _ => None,
        }
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        match error {
            // Its message names managers and fields, never values.
            kube::Error::Api(status) if status.code == CONFLICT && is_of_fields(&status) => {
                Self::Conflict(status.message.clone())
            }
            kube::Error::Api(status) if status.code == CONFLICT => Self::Taken,
            other => Self::Hub(other),
        }
    }
}
