//! The sources of clusters: the kinds that each watches, and its reader.

mod cluster_api;
mod cluster_profile;
mod gathered;
mod kubeconfig;
mod ocm;
mod references;
mod referring;

use std::sync::Arc;
use std::time::Duration;

use api::secret::CREDENTIAL_TYPE_LABEL;
use hub::cause_text;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use register::Rules;
use register::cluster_profile::MANAGER_LABEL;
use register::naming::Template;
use register::reading::{Reading, SecretObject, SecretReference, TOO_LARGE};
use serde_json::Value;

pub use self::gathered::Gathered;
pub use self::ocm::KIND as MANAGED_CLUSTERS;
use self::referring::ReferringReader;

use crate::args::{Config, SourceName};
use crate::raw::large::LARGEST;
use crate::raw::weight;
use crate::secrets::Meta;
use crate::wakes::Key;

/// The only annotation that a reader uses; it is Cluster API's.
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Bytes of memory that the labels of an object may take. Of more, none but one is kept.
const HEAVIEST_LABELS: usize = 128 << 10;
/// Bytes of a field that is kept of an object with more than those.
const SHORT: usize = 1 << 10;
/// For one read of a Secret.
const WITHIN: Duration = Duration::from_secs(10);

/// An enabled source.
pub struct Source {
    pub name: SourceName,
    /// Client of the hub that has the objects.
    pub client: Client,
    pub kind: Kind,
    /// Namespaces to read, each with its own feed; none: all namespaces.
    pub namespaces: Vec<String>,
    pub labels: Option<String>,
    pub template: Template,
    pub reader: Arc<dyn Reader>,
}

/// A kind whose objects register clusters.
#[derive(Debug, Clone)]
pub struct Kind {
    pub group: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
    /// Versions that this program understands. Of those that the hub serves, the first by
    /// Kubernetes' order of versions is used.
    pub versions: &'static [&'static str],
    /// Whether a `CustomResourceDefinition` defines it. A deletion of the definition announces that
    /// of the objects.
    pub is_custom: bool,
}

/// A watch of Secrets in addition to the objects. Keeps only their metadata, and only until the
/// objects that refer to them are known.
pub struct Related {
    /// None: the namespaces of the feed.
    pub namespace: Option<String>,
    pub labels: Option<String>,
    /// The common name of the Secrets, if they have one: then a right on this name suffices.
    pub name: Option<String>,
}

/// An object could not be read. The queue tries again.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read Secret {0}: the hub did not answer within {seconds} s", seconds = WITHIN.as_secs())]
    Timeout(String),
    #[error("cannot read Secret {place}: {}", cause_text(.source))]
    Hub { place: String, source: kube::Error },
}

/// The rules of one source.
pub trait Reader: Send + Sync {
    /// References to the Secrets that an object is read with.
    fn refers_to(&self, object: &Value) -> Vec<SecretReference>;

    /// Reads an object with its Secrets: those of [`Reader::refers_to`], in this order, None for
    /// each that does not exist. The result depends on nothing else, so the same input need not be
    /// read again.
    fn read(&self, object: &Value, secrets: &[Option<SecretObject>]) -> Reading;

    /// The Secrets to watch, if the objects are not Secrets themselves.
    fn related(&self) -> Option<Related> {
        None
    }

    /// Objects that were read with this Secret.
    fn of_secret(&self, _secret: &Meta) -> Vec<Key> {
        Vec::new()
    }

    /// Whether an object belongs to this source.
    fn is_of_source(&self, _object: &DynamicObject) -> bool {
        true
    }

    /// Forgets an object that is gone.
    fn forget(&self, _key: &Key) {}

    /// Forgets the objects for which `is_there` is false: their deletion was not seen.
    fn retain(&self, _is_there: &dyn Fn(&Key) -> bool) {}

    /// Removes fields of an object that are not read, because thousands of objects are kept.
    fn prune(&self, _object: &mut DynamicObject) {}
}

// === impl ReadError ===

impl ReadError {
    /// The hub's response, if there was one.
    pub fn hub(&self) -> Option<&kube::Error> {
        match self {
            Self::Hub { source, .. } => Some(source),
            Self::Timeout(_) => None,
        }
    }
}

/// All sources that `config` enables. `hub` is the hub's client, and `karmada` that of Karmada's
/// control plane, which may be another API server.
pub fn all(config: &Config, hub: &Client, karmada: &Client) -> Vec<Source> {
    let rules = Arc::new(config.rules.clone());
    config.sources.iter().map(|name| source(*name, config, &rules, hub, karmada)).collect()
}

fn source(name: SourceName, config: &Config, rules: &Arc<Rules>, hub: &Client, karmada: &Client) -> Source {
    let rules = Arc::clone(rules);
    let template = config.templates.get(&name).cloned().unwrap_or_default().without(&config.reserved_names);
    let namespaces = config.watch_namespaces.clone();
    let on_hub = |kind, reader| Source {
        name,
        client: hub.clone(),
        kind,
        namespaces: namespaces.clone(),
        labels: None,
        template: template.clone(),
        reader,
    };
    match name {
        SourceName::Capi => on_hub(cluster_api::KIND, Arc::new(cluster_api::ClusterApi(rules))),
        SourceName::Kubeconfig => Source {
            // Our Secrets copy the labels of their objects, perhaps one that this selector matches.
            labels: Some(format!("{},!{CREDENTIAL_TYPE_LABEL}", config.kubeconfig_selector)),
            ..on_hub(kubeconfig::KIND, Arc::new(kubeconfig::Kubeconfigs(rules)))
        },
        SourceName::Karmada => Source {
            client: karmada.clone(),
            namespaces: Vec::new(),
            ..on_hub(referring::KARMADA_KIND, Arc::new(ReferringReader::new(referring::KARMADA, rules)))
        },
        SourceName::Kubefed => Source {
            namespaces: vec![config.kubefed_namespace.clone()],
            ..on_hub(referring::KUBEFED_KIND, Arc::new(ReferringReader::new(referring::KUBEFED, rules)))
        },
        SourceName::Ocm => Source {
            namespaces: Vec::new(),
            ..on_hub(
                ocm::KIND,
                Arc::new(ocm::Ocm { rules, credential: config.ocm_credential.clone(), reach: config.ocm_endpoint }),
            )
        },
        SourceName::ClusterprofileImport => {
            let providers = Arc::clone(&config.providers);
            on_hub(cluster_profile::KIND, Arc::new(cluster_profile::ClusterProfiles { rules, providers }))
        }
    }
}

/// Leaves out what no reader looks at: annotations may have 256 KiB, and the rest of an object
/// more. One that is still too large, or `is_cut` because its metadata was, keeps its short fields,
/// and is refused for its size: a pause may have been among what was cut.
pub fn prune_metadata(object: &mut DynamicObject, is_cut: bool) {
    object.managed_fields_mut().clear();
    object.annotations_mut().retain(|key, _| key == PAUSED);
    // Readers only check whether the annotation exists.
    object.annotations_mut().values_mut().for_each(String::clear);
    if serde_json::to_vec(object.labels()).is_ok_and(|labels| weight(&labels) > HEAVIEST_LABELS) {
        object.labels_mut().retain(|key, _| key == MANAGER_LABEL);
    }
    object.metadata.owner_references = None;
    object.metadata.finalizers = None;
    if is_cut || object.data.to_string().len() > LARGEST {
        shorten(&mut object.data);
    }
}

/// The short fields still count: a no of an administrator is one of them.
fn shorten(data: &mut Value) {
    let Value::Object(parts) = data else { return };
    for fields in parts.values_mut().filter_map(Value::as_object_mut) {
        fields.retain(|_, value| value.to_string().len() <= SHORT);
    }
    parts.insert(TOO_LARGE.to_owned(), LARGEST.into());
}

/// Namespace, which is empty for kinds without one, and name.
fn place(object: &Value) -> (&str, &str) {
    let text = |field| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

/// The Secret of an object that refers to at most one.
fn first(secrets: &[Option<SecretObject>]) -> Option<&SecretObject> {
    secrets.first().and_then(Option::as_ref)
}

/// Keeps only these fields of an object.
fn keep<'a>(object: &mut DynamicObject, paths: &[impl AsRef<[&'a str]>]) {
    let mut kept = serde_json::Map::new();
    for path in paths {
        let path = path.as_ref();
        let pointer: String = path.iter().flat_map(|part| ["/", part]).collect();
        let Some(value) = object.data.pointer(&pointer).cloned() else { continue };
        let [outer @ .., last] = path else { continue };
        let mut map = &mut kept;
        for part in outer {
            let inner = map.entry(*part).or_insert_with(|| Value::Object(serde_json::Map::new()));
            let Some(inner) = inner.as_object_mut() else { return };
            map = inner;
        }
        map.insert((*last).to_owned(), value);
    }
    object.data = Value::Object(kept);
}

#[cfg(test)]
mod tests;
