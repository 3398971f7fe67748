//! The only writer of cluster Secrets: server-side apply without force, and deletion of exactly the
//! Secret that was judged.
//!
//! Fields that another manager has set stay as they are. A label that a person took over must not
//! stop the rotation of the credential, so the Secret is then applied without that label. A name
//! that was free when it was judged may belong to a person's Secret when the write arrives, and
//! apply would add fields to that Secret. The response shows it, and a second apply removes these
//! fields.

use std::time::Duration;

use api::secret::{CREDENTIAL_TYPE_LABEL, ClusterSecret, ENDPOINT_TYPE_LABEL};
use hub::cause_text;
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
/// Where a conflict's cause has the key of a label.
const LABEL_FIELD: &str = ".metadata.labels.";
/// Labels that say what the rest of the Secret is: it is never written without them.
const NEEDED_LABELS: [&str; 3] = [CREDENTIAL_TYPE_LABEL, ENDPOINT_TYPE_LABEL, SOURCE_LABEL];

/// Metadata of a cluster Secret.
pub type Meta = raw::Meta<Secret>;

/// A registration to write.
pub struct DesiredRegistration<'a> {
    pub name: &'a str,
    pub object: &'a Object,
    pub uid: &'a str,
    pub hash: &'a str,
    pub secret: &'a ClusterSecret,
}

/// A Secret as it was written.
#[derive(Debug)]
pub struct Written {
    pub meta: Meta,
    /// Keys of labels that another manager has set to something else. They stay as they are.
    pub labels_left: Vec<String>,
}

/// Why a Secret was not written or removed. These texts contain nothing of its content.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(
        "another field manager has set fields of the Secret: {0}; remove them, or the Secret, to let it follow its source"
    )]
    Conflict(String, Vec<String>),
    /// When the write arrived, the Secret was not the one that was judged.
    #[error("the Secret changed in the meantime")]
    Taken,
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error("the hub did not answer in time")]
    Timeout,
    #[error("the gateway could not use it: {0}")]
    Unusable(#[from] api::secret::SecretError),
    #[error("{}", cause_text(.0))]
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
    pub async fn write(
        &self,
        wanted: &DesiredRegistration<'_>,
        uid: Option<&str>,
        term: Duration,
    ) -> Result<Written, WriteError> {
        let mut document = wanted.secret.document(Some(&self.namespace), wanted.name)?;
        mark(&mut document, wanted);
        if let Some(uid) = uid {
            // Another uid means another Secret, perhaps a person's: then the hub answers 409.
            document["metadata"]["uid"] = uid.into();
        }
        let began = Instant::now();
        let left = || term.saturating_sub(began.elapsed());
        let (why, fields) = match self.apply(wanted.name, &document, term).await {
            Err(WriteError::Conflict(why, fields)) => (why, fields),
            answered => {
                let meta = answered?;
                if uid.is_none() && is_shared(&meta) {
                    let nothing = json!({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": wanted.name, "namespace": self.namespace, "uid": meta.metadata.uid}});
                    self.apply(wanted.name, &nothing, left()).await?;
                    return Err(WriteError::Taken);
                }
                return Ok(Written { meta, labels_left: Vec::new() });
            }
        };
        // Without a uid, the Secret that is there may be a person's.
        let Some(labels_left) = uid.and_then(|_| labels_alone(&fields)) else {
            return Err(WriteError::Conflict(why, fields));
        };
        if let Some(labels) = document["metadata"]["labels"].as_object_mut() {
            labels.retain(|key, _| !labels_left.contains(key));
        }
        let meta = self.apply(wanted.name, &document, left()).await?;
        Ok(Written { meta, labels_left })
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
fn mark(document: &mut Value, wanted: &DesiredRegistration<'_>) {
    let metadata = &mut document["metadata"];
    metadata["labels"][SOURCE_LABEL] = wanted.object.source.into();
    metadata["annotations"][OBJECT_ANNOTATION] = wanted.object.reference.as_str().into();
    metadata["annotations"][UID_ANNOTATION] = wanted.uid.into();
    metadata["annotations"][HASH_ANNOTATION] = wanted.hash.into();
}

/// The keys of a conflict's fields, if all are labels that the Secret does not need.
fn labels_alone(fields: &[String]) -> Option<Vec<String>> {
    let key = |field: &String| {
        let key = field.strip_prefix(LABEL_FIELD)?;
        (!NEEDED_LABELS.contains(&key)).then(|| key.to_owned())
    };
    let mut keys = fields.iter().map(key).collect::<Option<Vec<_>>>()?;
    // Each manager of a field is a cause.
    keys.sort();
    keys.dedup();
    Some(keys)
}

/// Whether another manager has fields of a Secret that this write should have created.
fn is_shared(meta: &Meta) -> bool {
    let managers = meta.metadata.managed_fields.iter().flatten();
    managers.filter_map(|entry| entry.manager.as_deref()).any(|manager| manager != MANAGER)
}

/// Whether the conflict is about fields of another manager, not about another object.
pub fn is_of_fields(status: &Status) -> bool {
    !fields(status).is_empty()
}

/// The fields that other managers have.
fn fields(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.filter(|cause| cause.reason == "FieldManagerConflict").map(|cause| cause.field.clone()).collect()
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
                Self::Conflict(status.message.clone(), fields(&status))
            }
            kube::Error::Api(status) if status.code == CONFLICT => Self::Taken,
            other => Self::Hub(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_that_the_secret_does_not_need_are_left_to_others() {
        let left = |fields: &[&str]| labels_alone(&fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>());
        let (team, region) = (".metadata.labels.example.com/team", ".metadata.labels.region");
        assert_eq!(left(&[team, region, team]), Some(vec!["example.com/team".to_owned(), "region".to_owned()]));
        let needed =
            [SOURCE_LABEL, CREDENTIAL_TYPE_LABEL, ENDPOINT_TYPE_LABEL].map(|key| format!("{LABEL_FIELD}{key}"));
        let others = [".data.token", ".metadata.annotations.a", ".metadata.labels"];
        for field in needed.iter().map(String::as_str).chain(others) {
            assert_eq!(left(&[team, field]), None, "{field}");
        }
    }
}
