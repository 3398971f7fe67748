//! Makes the Secret for a write of a Cluster.

use std::collections::BTreeMap;

use api::hub_object::SecretObject;
use api::karmada::{ANNOTATION, CREATED_ANNOTATION, PROVIDER_LABEL, REGION_LABEL, ZONE_DELIMITER, ZONE_LABEL};
use api::karmada_cluster::change::{DesiredCluster, Refused};
use api::karmada_cluster::cluster::{Cluster, is_ours};
use api::secret::{CREDENTIAL_TYPE_LABEL, ClusterSecret, DATA_KEYS, ENDPOINT_TYPE_LABEL};
use api::selector::label::is_value;
use register::labels::{MOST, taken};
use serde_json::{Map, Value, json};

use super::registration::SOURCE_LABEL;
use super::status;
use crate::clusters::View;
use crate::error::Error;

/// The Secret of a new cluster, in `namespace`.
pub fn new(
    view: &View,
    namespace: &str,
    wanted: &DesiredCluster,
    registered: &ClusterSecret,
) -> Result<Vec<u8>, Error> {
    check_labels(wanted, &BTreeMap::new())?;
    let document = registered.document(None, &wanted.name);
    let document = document.map_err(|why| status(Refused::field(&wanted.name, "spec", &why.to_string())))?;
    let mut document = kept(view, namespace, wanted, document)?;
    let annotations = map(&mut document["metadata"]["annotations"]).ok_or_else(|| unreadable(namespace, wanted))?;
    annotations.insert(CREATED_ANNOTATION.to_owned(), "true".into());
    text(namespace, wanted, &document)
}

/// The Secret `json` of `namespace`, shown as `shown`, changed to `wanted`; with `registered` if
/// the cluster is now reached in another way.
pub fn over(
    view: &View,
    namespace: &str,
    json: &[u8],
    shown: &Cluster<'_>,
    wanted: &DesiredCluster,
    registered: Option<&ClusterSecret>,
) -> Result<Vec<u8>, Error> {
    check_labels(wanted, &shown.labels)?;
    let mut secret: Value = serde_json::from_slice(json).map_err(|_| unreadable(namespace, wanted))?;
    if let Some(registered) = registered {
        let document = registered.document(None, &wanted.name);
        let document = document.map_err(|why| status(Refused::field(&wanted.name, "spec", &why.to_string())))?;
        reached(&mut secret, &document).ok_or_else(|| unreadable(namespace, wanted))?;
    }
    let labels = map(&mut secret["metadata"]["labels"]).ok_or_else(|| unreadable(namespace, wanted))?;
    labels.retain(|key, _| is_ours(key));
    labels.extend(wanted.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    if !labels.contains_key(SOURCE_LABEL) {
        place(labels, shown, wanted);
    }
    text(namespace, wanted, &kept(view, namespace, wanted, secret)?)
}

/// Checks changes of labels. Labels of the contract mark a Secret's purpose and its owner, so a
/// Cluster, like every source, may neither set nor remove them: other programs trust them.
fn check_labels(wanted: &DesiredCluster, before: &BTreeMap<String, String>) -> Result<(), Error> {
    let is_new = |(key, value): &(&String, &String)| before.get(*key) != Some(*value);
    let changed: BTreeMap<_, _> =
        wanted.labels.iter().filter(is_new).map(|(key, value)| (key.clone(), value.clone())).collect();
    let refused = |why: String| Err(status(Refused::field(&wanted.name, "metadata.labels", &why)));
    if wanted.labels.len() > MOST.max(before.len()) {
        return refused(format!("a cluster has at most {MOST} labels"));
    }
    let gone = before.iter().filter(|(key, _)| !wanted.labels.contains_key(*key));
    let gone = gone.map(|(key, value)| (key.clone(), value.clone())).collect();
    for (changed, what) in [(changed, "set"), (gone, "removed")] {
        let others = others(&changed);
        if let Some(key) = others.iter().find(|key| !matches!(key.as_str(), REGION_LABEL | ZONE_LABEL)) {
            return refused(format!("{key} cannot be {what} here: labels of this domain mark the purpose of a Secret"));
        }
    }
    Ok(())
}

/// The `labels` that no source may set. Each is checked alone, because labels beyond the limit for
/// a source are not reserved ones.
fn others(labels: &BTreeMap<String, String>) -> Vec<String> {
    let is_other =
        |(key, value): &(&String, &String)| taken(&BTreeMap::from([((*key).clone(), (*value).clone())])).is_empty();
    labels.iter().filter(is_other).map(|(key, _)| key.clone()).collect()
}

fn reached(secret: &mut Value, document: &Value) -> Option<()> {
    let data = map(&mut secret["data"])?;
    data.retain(|key, _| !DATA_KEYS.contains(&key.as_str()));
    data.extend(document["data"].as_object()?.clone());
    let labels = map(&mut secret["metadata"]["labels"])?;
    for key in [CREDENTIAL_TYPE_LABEL, ENDPOINT_TYPE_LABEL] {
        labels.insert(key.to_owned(), document["metadata"]["labels"][key].clone());
    }
    Some(())
}

/// Sets the labels of the cluster's place where it changed. Values that no label can hold are only
/// in the annotation.
fn place(labels: &mut Map<String, Value>, shown: &Cluster<'_>, wanted: &DesiredCluster) {
    let zones = |zones: &[String]| zones.join(ZONE_DELIMITER);
    let (before, now) = (&shown.spec, &wanted.spec);
    for (key, before, now) in [
        (REGION_LABEL, before.region.clone(), now.region.clone()),
        (ZONE_LABEL, zones(&before.zones), zones(&now.zones)),
        (PROVIDER_LABEL, before.provider.clone(), now.provider.clone()),
    ] {
        if before == now {
            continue;
        }
        if !now.is_empty() && is_value(&now) {
            labels.insert(key.to_owned(), now.into());
        } else {
            labels.remove(key);
        }
    }
}

/// Adds the annotation for fields that `secret` does not have elsewhere.
fn kept(view: &View, namespace: &str, wanted: &DesiredCluster, mut secret: Value) -> Result<Value, Error> {
    let object: SecretObject = serde_json::from_value(secret.clone()).map_err(|_| unreadable(namespace, wanted))?;
    let seen = view.read(&object);
    let seen = seen.map_err(|why| status(Refused::field(&wanted.name, "spec", &why.to_string())))?;
    let kept = wanted.kept(&seen.spec).map_err(status)?;
    let annotations = map(&mut secret["metadata"]["annotations"]).ok_or_else(|| unreadable(namespace, wanted))?;
    annotations.insert(ANNOTATION.to_owned(), kept.into());
    Ok(secret)
}

fn text(namespace: &str, wanted: &DesiredCluster, secret: &Value) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(secret).map_err(|_| unreadable(namespace, wanted))
}

/// The existing map, or a new empty one.
fn map(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn unreadable(namespace: &str, wanted: &DesiredCluster) -> Error {
    Error::Unusable(format!("secret {namespace}/{}: its JSON is not that of a Secret", wanted.name))
}
