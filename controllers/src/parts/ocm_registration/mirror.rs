//! Mirrors the objects that acceptance creates, so that a cluster without changes costs no request.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::{Writer, WriterDropped};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt as _};
use register::csr::CLUSTER_LABEL;
use register::ocm::acceptance::{self, Difference, Key, Kind, Wanted};
use serde_json::Value;

use super::hub::{self, value};
use crate::calls::{paged, watcher};
use crate::feed::follow;
use crate::raw::{self, RawObject};

/// Bytes of an object's fields that are kept: those that are made have a few hundred.
const LARGEST: usize = 16 << 10;
const MOST_OWNERS: usize = 16;

/// Objects with the label of a cluster, of the names that acceptance gives.
pub struct Mirror {
    client: Client,
    stores: Vec<(Kind, ApiResource, Store<DynamicObject>)>,
}

/// What fills a mirror.
pub struct Writers(Vec<(Kind, ApiResource, Writer<DynamicObject>)>);

// === impl Mirror ===

impl Mirror {
    pub fn new(client: Client) -> (Self, Writers) {
        let (mut stores, mut writers) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            let resource = resource(kind);
            let writer = Writer::new(resource.clone());
            stores.push((kind, resource.clone(), writer.as_reader()));
            writers.push((kind, resource, writer));
        }
        (Self { client, stores }, Writers(writers))
    }

    /// Completes when every kind has been listed once.
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

    /// None if the object does not exist.
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

    /// The clusters in the objects' labels, once per object.
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
    /// Follows all kinds. Calls `notify` with the cluster of each object that was created, changed
    /// or deleted; with an empty name for a role that all clusters share. Never ends.
    pub async fn follow(self, client: Client, notify: impl Fn(&str) + Sync) {
        let notify = &notify;
        let each = self.0.into_iter();
        join_all(each.map(|(kind, resource, writer)| follow(client.clone(), (kind, resource), writer, notify))).await;
    }

    /// As if a watch had told of an object.
    #[cfg(test)]
    pub fn saw(&mut self, kind: Kind, object: &DynamicObject) {
        for (_, _, writer) in self.0.iter_mut().filter(|(of, ..)| *of == kind) {
            writer.apply_watcher_event(&Event::Apply(object.clone()));
        }
    }
}

async fn follow(
    client: Client,
    (kind, resource): (Kind, ApiResource),
    mut writer: Writer<DynamicObject>,
    notify: &(dyn Fn(&str) + Sync),
) {
    let what = format!("{} of clusters", resource.plural);
    let events = watcher(Api::<RawObject>::all_with(client, &resource), paged().labels(CLUSTER_LABEL));
    let events = events.map(|event| event.map(|event| raw::mapped(event, |object| kept(kind, object))));
    let apply = |event: Event<DynamicObject>| {
        if let Event::InitApply(object) | Event::Apply(object) | Event::Delete(object) = &event
            && !is_made(kind, object)
        {
            // A user that may write one in a namespace may write many, as large as the hub takes.
            return;
        }
        writer.apply_watcher_event(&event);
        if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &event
            && let Some(cluster) = object.labels().get(CLUSTER_LABEL)
            // Any user may leave the label empty on an object of their own, so only the shared
            // roles count.
            && (!cluster.is_empty() || acceptance::is_common(&object.name_any()))
        {
            notify(cluster);
        }
    };
    follow::each(events, what, apply).await;
}

fn is_made(kind: Kind, object: &DynamicObject) -> bool {
    acceptance::is_made(kind, object.metadata.namespace.as_deref().unwrap_or_default(), &object.name_any())
}

/// What of an object is compared. One whose contents are too large is unlike any that acceptance
/// makes, and without them it still is.
fn kept(kind: Kind, object: RawObject) -> DynamicObject {
    let most = if kind == Kind::Namespace { 0 } else { LARGEST };
    let mut object = object.read_within(most);
    object.managed_fields_mut().clear();
    object.annotations_mut().clear();
    object.labels_mut().retain(|key, _| key == CLUSTER_LABEL);
    if object.finalizers().iter().map(String::len).sum::<usize>() > LARGEST {
        object.finalizers_mut().retain(|finalizer| finalizer == acceptance::WORK_FINALIZER);
    }
    if object.owner_references().len() > MOST_OWNERS {
        let owners = object.owner_references_mut();
        owners.retain(|owner| owner.kind == "ManagedCluster");
        owners.truncate(MOST_OWNERS);
    }
    object
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use parking_lot::Mutex;
    use register::ocm::acceptance::Cluster;
    use serde_json::json;
    use tower::service_fn;

    use super::*;
    use crate::calls::PAGE;

    const SUBJECTS: usize = 1_000;

    /// A binding of twice as many bytes as are kept.
    fn binding(namespace: &str, name: &str, cluster: &str) -> Value {
        let subject = json!({"kind": "User", "name": "u"});
        json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": "3", "labels": {CLUSTER_LABEL: cluster, "x": "y"}},
            "roleRef": {"kind": "Role", "name": "own"}, "subjects": vec![subject; SUBJECTS]})
    }

    /// A hub with these bindings, which says what it was asked for.
    fn hub(all: Vec<Value>, asked: Arc<Mutex<Vec<String>>>) -> Client {
        let answer = move |request: Request<Body>| {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let items: &[Value] = if path.ends_with("/rolebindings") { &all } else { &[] };
            asked.lock().push(format!("{path}?{query}"));
            let list = json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": items});
            let body = if query.contains("watch=true") { String::new() } else { list.to_string() };
            async move { Ok::<_, kube::Error>(Response::new(Body::from(body.into_bytes()))) }
        };
        Client::new(service_fn(answer), "default")
    }

    /// A user that may write bindings in one namespace fills no memory, and causes no other reads.
    #[tokio::test]
    async fn bindings_that_no_acceptance_made_are_not_kept() {
        let wanted = Cluster { name: "c1", uid: "u" }.granted(false);
        let own = wanted.iter().find(|wanted| wanted.key.name.ends_with(":registration")).unwrap();
        let mut all: Vec<_> = (0..20).map(|number| binding("tenant", &format!("b{number}"), "c1")).collect();
        all.push(binding("c1", &own.key.name, "c1"));
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let client = hub(all, Arc::clone(&asked));
        let (mirror, writers) = Mirror::new(client.clone());
        let woken = Mutex::new(Vec::new());
        tokio::select! {
            () = writers.follow(client, |cluster| woken.lock().push(cluster.to_owned())) => {}
            listed = mirror.listed() => listed.unwrap(),
        }
        let bindings = &mirror.stores.iter().find(|(kind, ..)| *kind == Kind::RoleBinding).unwrap().2;
        let kept: Vec<_> = bindings.state().iter().map(|object| object.name_any()).collect();
        assert_eq!(kept, [&*own.key.name]);
        assert_eq!(*woken.lock(), ["c1"]);
        let found = mirror.get(&own.key).unwrap();
        assert!(found.data.is_null() && found.labels().len() == 1, "no more of it than is compared");
        assert_eq!(mirror.difference(own), Some(Difference::Whole), "it is not what it is to be");
        let asked = asked.lock();
        let page = format!("limit={PAGE}");
        assert!(asked.iter().all(|query| query.contains("watch=true") || query.contains(&page)), "{asked:?}");
    }
}
