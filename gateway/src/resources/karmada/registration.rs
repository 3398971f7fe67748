//! Registers a Cluster: reads the Secrets that it refers to, and makes a cluster of them by the
//! rules of the source `karmada` (`register::karmada`).
//!
//! A Cluster names Secrets, and an address to which their tokens are sent. So the gateway reads a
//! Secret only for a caller that may read it too, and only in the one namespace where `karmadactl`
//! stores them.

use std::borrow::Cow;
use std::sync::Arc;

use api::access::{Attributes, ResourceAttributes, Verb};
use api::karmada::{API_VERSION, KIND};
use api::karmada_cluster::change::{DesiredCluster, Refused};
use api::karmada_cluster::cluster::Cluster;
use api::secret::{ClusterSecret, ClusterSpec};
use auth::User;
use register::naming::InvalidClusterName;
use register::reading::{Reading, SecretObject, SecretReference};
use register::{Rules, karmada};
use serde_json::json;

use super::{hub as failed, status};
use crate::error::Error;
use crate::hub::Hub;
use crate::needs::RequestNeeds;

/// Label of Secrets that a source of the controllers registered: changes are made at the source.
pub use register::claims::SOURCE_LABEL;
/// Placeholder for the parser: a new Cluster has no UID yet.
const NO_UID: &str = "-";

/// The cluster that `wanted` describes, read for `user`.
pub async fn of(
    gateway: &RequestNeeds,
    hub: &Hub,
    user: &Arc<User>,
    wanted: &DesiredCluster,
) -> Result<ClusterSecret, Error> {
    let metadata = json!({"name": wanted.name, "uid": NO_UID, "labels": wanted.labels});
    let cluster = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": wanted.spec});
    let mut secrets = Vec::new();
    for reference in karmada::references(&cluster) {
        review(gateway, user, Verb::Get, &reference).await?;
        secrets.extend(secret(hub, wanted, &reference).await?);
    }
    let secrets: Vec<_> = secrets.iter().collect();
    let invalid = |why: String| status(Refused::field(&wanted.name, "spec", &why));
    match karmada::read(&cluster, &secrets, &rules(gateway)) {
        Reading::Register(registered) => Ok(*registered),
        Reading::Refused(why) => Err(invalid(why.to_string())),
        Reading::Waiting(why) => Err(invalid(why.to_string())),
        Reading::Paused => Err(invalid("it is paused".to_owned())),
    }
}

/// Replaces the texts of `why`, because these name flags of the controllers.
pub fn misnamed(name: &str, why: InvalidClusterName) -> Refused {
    let detail = match why {
        InvalidClusterName::Name(why) => why.to_string(),
        _ => "this name, or one that begins like it, belongs to the hub or to another Secret: use another".to_owned(),
    };
    Refused::field(name, "metadata.name", &detail)
}

/// Whether this write may change how the member is reached. A registration by a source can only be
/// changed there, and a credential may go to another address only for callers that may read it.
pub fn may_move(current: &ClusterSpec, wanted: &DesiredCluster, shown: &Cluster<'_>) -> Result<(), Refused> {
    let no = |field: &str, why: &str| Err(Refused::field(&wanted.name, field, why));
    if let Some(source) = current.labels.get(SOURCE_LABEL) {
        let why = format!("the source {source} registered this cluster: change how it is reached there");
        return no("spec", &why);
    }
    if wanted.spec.secret_ref.is_none() && wanted.spec.impersonator_secret_ref.is_none() {
        return no(
            "spec.secretRef",
            "the credential is in the cluster's own Secret: name a secretRef here, or change that Secret",
        );
    }
    if wanted.spec.proxy_url.contains('@') && wanted.spec.proxy_url == shown.spec.proxy_url {
        return no("spec.proxyURL", "its password is not shown: write the URL with it, or use proxyHeader");
    }
    Ok(())
}

/// Checks whether `user` may change how a cluster from elsewhere is reached: a user that may write
/// its Secret could do it there.
pub async fn review_move(gateway: &RequestNeeds, hub: &Hub, user: &Arc<User>, cluster: &str) -> Result<(), Error> {
    let secret = SecretReference { namespace: hub.namespace().to_owned(), name: cluster.to_owned() };
    review(gateway, user, Verb::Update, &secret).await
}

async fn review(
    gateway: &RequestNeeds,
    user: &Arc<User>,
    verb: Verb,
    reference: &SecretReference,
) -> Result<(), Error> {
    let attributes = Attributes::Resource(ResourceAttributes {
        verb,
        group: Cow::Borrowed(""),
        version: Cow::Borrowed("v1"),
        resource: Cow::Borrowed("secrets"),
        subresource: Cow::Borrowed(""),
        namespace: Some(reference.namespace.as_str().into()),
        name: Some(reference.name.as_str().into()),
        field_selector: None,
        label_selector: None,
    });
    gateway.authorizer.authorize(Arc::clone(user), attributes).await?;
    Ok(())
}

/// `None` if the Secret does not exist.
async fn secret(
    hub: &Hub,
    wanted: &DesiredCluster,
    reference: &SecretReference,
) -> Result<Option<SecretObject>, Error> {
    let SecretReference { namespace, name } = reference;
    let json = match hub.secret_in(namespace, name).await {
        Ok(json) => json,
        Err(failure) if failure.code() == Some(404) => return Ok(None),
        Err(failure) if failure.code() == Some(403) => {
            return Err(Error::Unusable(format!(
                "the hub does not let the gateway get secrets in the namespace {namespace}: grant its ServiceAccount \
                 get on secrets there (chart: dialects.karmada.register)"
            )));
        }
        Err(failure) => return Err(failed(failure)),
    };
    let value = serde_json::from_slice(&json)
        .map_err(|_| Error::Unusable(format!("secret {namespace}/{name}: the hub's JSON cannot be read")))?;
    let read = SecretObject::read(&value);
    read.map(Some).map_err(|why| status(Refused::field(&wanted.name, "spec", &why.to_string())))
}

/// The Secret contract lets its writers turn verification off, and so does `spec`.
fn rules(gateway: &RequestNeeds) -> Rules {
    Rules { allow_insecure: true, endpoints: gateway.settings.endpoints.clone(), ..Rules::default() }
}
