//! The only writer of cluster Secrets: server-side apply without force, and deletion of exactly the
//! Secret that was judged.
//!
//! Fields that another manager has set stay as they are. A name that was free when it was judged
//! may belong to a person's Secret when the write arrives, and apply would add fields to that
//! Secret. The response shows it, and a second apply removes these fields.

use std::time::Duration;

use api::secret::ClusterSecret;
use hub::Cause;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Api, Client};
use register::claims::Object;
pub use register::claims::SOURCE_LABEL;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::calls::{CONFLICT, MANAGER, NOT_FOUND, deleting, is};
use crate::raw;
use crate::term::{NotLeading, within};

/// Annotation: the object as `group/Kind/namespace/name`.
pub const OBJECT_ANNOTATION: &str = "cluster.core.oam.dev/source-object";
pub const UID_ANNOTATION: &str = "cluster.core.oam.dev/source-uid";
/// Annotation: `register::fingerprint` of the content.
pub const HASH_ANNOTATION: &str = "cluster.core.oam.dev/source-hash";

/// Metadata of a cluster Secret.
pub type Meta = raw::Meta<Secret>;

/// A registration to write.
pub struct Wanted<'a> {
    pub name: &'a str,
    pub object: &'a Object,
    pub uid: &'a str,
    pub hash: &'a str,
    pub secret: &'a ClusterSecret,
}

/// Why a Secret was not written or removed. These texts contain nothing of its content.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(
        "another field manager has set fields of the Secret: {0}; remove them, or the Secret, to let it follow its source"
    )]
    Conflict(String),
    /// When the write arrived, the Secret was not the one that was judged.
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

/// The Secrets of the clusters' namespace.
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

    /// The metadata of the namespace's Secrets.
    pub fn metadata(&self) -> Api<Meta> {
        Api::namespaced(self.api.clone().into_client(), &self.namespace)
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Writes a Secret. `uid` is that of the existing Secret, if there is one. `term` is how long
    /// this replica may still write.
    pub async fn write(&self, wanted: &Wanted<'_>, uid: Option<&str>, term: Duration) -> Result<Meta, WriteError> {
        let mut document = wanted.secret.document(Some(&self.namespace), wanted.name)?;
        mark(&mut document, wanted);
        if let Some(uid) = uid {
            // Another uid means another Secret, perhaps a person's: then the hub answers 409.
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
        // Only metadata comes back: the response need not repeat the content.
        let patch = Patch::Apply(document);
        let answered = timeout(within(term)?, raw::meta::patch(&self.api, name, &parameters, &patch)).await;
        answered.map_err(|_| WriteError::Timeout)?.map_err(WriteError::from)
    }

    /// Removes the Secret that was judged, but not a later one with its name. Succeeds if the
    /// Secret is gone already.
    pub async fn remove(&self, name: &str, (uid, version): (&str, &str), term: Duration) -> Result<(), WriteError> {
        let parameters = deleting(uid, Some(version));
        match timeout(within(term)?, self.api.delete(name, &parameters)).await.map_err(|_| WriteError::Timeout)? {
            Ok(_) => Ok(()),
            Err(error) if is(&error, NOT_FOUND) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Adds the label and the annotations that name the object.
fn mark(document: &mut Value, wanted: &Wanted<'_>) {
    let metadata = &mut document["metadata"];
    metadata["labels"][SOURCE_LABEL] = wanted.object.source.into();
    metadata["annotations"][OBJECT_ANNOTATION] = wanted.object.reference.as_str().into();
    metadata["annotations"][UID_ANNOTATION] = wanted.uid.into();
    metadata["annotations"][HASH_ANNOTATION] = wanted.hash.into();
}

/// Whether another manager has fields of a Secret that this write should have created.
fn is_shared(meta: &Meta) -> bool {
    let managers = meta.metadata.managed_fields.iter().flatten();
    managers.filter_map(|entry| entry.manager.as_deref()).any(|manager| manager != MANAGER)
}

/// Whether the conflict is about fields of another manager, not about another object.
pub fn is_of_fields(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}

// === impl WriteError ===

impl WriteError {
    /// The hub's response, if the error is nothing else.
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
            // The message names managers and fields, never values.
            kube::Error::Api(status) if status.code == CONFLICT && is_of_fields(&status) => {
                Self::Conflict(status.message.clone())
            }
            kube::Error::Api(status) if status.code == CONFLICT => Self::Taken,
            other => Self::Hub(other),
        }
    }
}
