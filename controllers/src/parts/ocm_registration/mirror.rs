//! What is on the hub of the objects that acceptance makes, so that no change costs no request.

use std::sync::Arc;

use futures_util::future::join_all;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::{Writer, WriterDropped};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use register::csr::CLUSTER_LABEL;
use register::ocm::acceptance::{self, Difference, Key, Kind, Wanted};
use serde_json::Value;

use super::hub::{self, value};
use crate::feed::follow;

const PAGE: u32 = 500;

/// Objects with the label of a cluster.
pub struct Mirror {
    client: Client,
    stores: Vec<(Kind, ApiResource, Store<DynamicObject>)>,
}

/// What fills a mirror.
pub struct Writers(Vec<(ApiResource, Writer<DynamicObject>)>);

// === impl Mirror ===

impl Mirror {
    pub fn new(client: Client) -> (Self, Writers) {
        let (mut stores, mut writers) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            let resource = resource(kind);
            let writer = Writer::new(resource.clone());
            stores.push((kind, resource.clone(), writer.as_reader()));
            writers.push((resource, writer));
        }
        (Self { client, stores }, Writers(writers))
    }

    /// Completes when everything was listed once.
    pub async fn listed(&self) -> Result<(), WriterDropped> {
        for (_, _, store) in &self.stores {
            store.wait_until_ready().await?;
        }
        Ok(())
    }

    pub fn get(&self, key: &Key) -> Option<Arc<DynamicObject>> {
        let (_, resource, store) = self.stores.iter().find(|(kind, ..)| *kind == key.kind)?;
        let reference = ObjectRef::new_with(&key.name, resource.clone());
        store.get(&if key.namespace.is_empty() { reference } else { reference.within(&key.namespace) })
    }

    pub fn value(&self, key: &Key) -> Option<Value> {
        self.get(key).map(|object| value(&object))
    }

    /// None if it is not there.
    pub fn difference(&self, wanted: &Wanted) -> Option<Difference> {
        self.value(&wanted.key).map(|existing| acceptance::difference(&existing, wanted))
    }

    pub fn api(&self, key: &Key) -> Api<DynamicObject> {
        let resource = resource(key.kind);
        if key.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
        }
    }

    /// The clusters that objects name, each as often as it is named.
    pub fn clusters(&self) -> Vec<String> {
        let objects = self.stores.iter().flat_map(|(_, _, store)| store.state());
        objects.filter_map(|object| object.labels().get(CLUSTER_LABEL).cloned()).collect()
    }
}

fn resource(kind: Kind) -> ApiResource {
    let [group, version, name, plural] = kind.resource();
    hub::resource(group, version, name, plural)
}

// === impl Writers ===

impl Writers {
    /// Follows all kinds, and tells which cluster an object is of that came, changed or went: none
    /// (an empty name) of a role that all clusters have. Never ends.
    pub async fn follow(self, client: Client, notify: impl Fn(&str) + Sync) {
        let notify = &notify;
        join_all(self.0.into_iter().map(|(resource, writer)| follow(client.clone(), resource, writer, notify))).await;
    }
}

async fn follow(
    client: Client,
    resource: ApiResource,
    mut writer: Writer<DynamicObject>,
    notify: &(dyn Fn(&str) + Sync),
) {
    let only = watcher::Config::default().labels(CLUSTER_LABEL).page_size(PAGE);
    let api = Api::<DynamicObject>::all_with(client, &resource);
    let apply = |event: Event<DynamicObject>| {
        let event = event.modify(|object| {
            object.managed_fields_mut().clear();
            object.annotations_mut().clear();
        });
        writer.apply_watcher_event(&event);
        if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &event
            && let Some(cluster) = object.labels().get(CLUSTER_LABEL)
            // Any user may leave the label empty on its own objects; these roles are of all
            // clusters.
            && (!cluster.is_empty() || acceptance::is_common(&object.name_any()))
        {
            notify(cluster);
        }
    };
    let what = format!("{} of clusters", resource.plural);
    follow::each(watcher::watcher(api, only), what, apply).await;
}
