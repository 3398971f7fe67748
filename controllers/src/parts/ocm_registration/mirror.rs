//! Mirrors the objects that acceptance creates, so that a cluster without changes costs no request.
//! Of each, only what acceptance compares is kept: each cluster has seven or eight.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use futures_util::FutureExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::core::ObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource as _};
use parking_lot::RwLock;
use register::csr::CLUSTER_LABEL;
use register::ocm::acceptance::{self, DesiredGrant, Difference, Key, Kind, ObservedGrant};
use tokio::sync::watch;

use super::hub_calls;
use crate::calls::{paged, watcher};
use crate::feed::follow;
use crate::raw::RawObject;
use crate::together;

/// Bytes of an object's fields that are read: those that are made have a few hundred.
const LARGEST: usize = 16 << 10;

/// Objects with the label of a cluster, of the names that acceptance gives.
pub struct Mirror {
    client: Client,
    kinds: Kinds,
}

/// What fills a mirror.
pub struct Writers(Kinds);

type Kinds = Arc<[OfKind; Kind::ALL.len()]>;
type Notify<'a> = &'a (dyn Fn(&str) + Sync);

/// The objects of a kind.
struct OfKind {
    kind: Kind,
    objects: RwLock<HashMap<Key, ObservedGrant>>,
    listed: watch::Sender<bool>,
}

// === impl Mirror ===

impl Mirror {
    pub fn new(client: Client) -> (Self, Writers) {
        let kinds = Kinds::new(Kind::ALL.map(OfKind::new));
        (Self { client, kinds: Arc::clone(&kinds) }, Writers(kinds))
    }

    /// Completes when every kind has been listed once.
    pub async fn listed(&self) {
        for kind in &*self.kinds {
            // The sender lives as long as this does.
            let _ = kind.listed.subscribe().wait_for(|listed| *listed).await;
        }
    }

    /// What `read` says of an object, if there is one.
    pub fn read<T>(&self, key: &Key, read: impl FnOnce(&ObservedGrant) -> T) -> Option<T> {
        let kind = self.kinds.iter().find(|of| of.kind == key.kind)?;
        kind.objects.read().get(key).map(read)
    }

    pub fn has(&self, key: &Key) -> bool {
        self.read(key, |_| ()).is_some()
    }

    /// None if the object does not exist.
    pub fn difference(&self, wanted: &DesiredGrant) -> Option<Difference> {
        self.read(&wanted.key, |seen| seen.difference(wanted))
    }

    pub fn api(&self, key: &Key) -> Api<DynamicObject> {
        let resource = resource(key.kind);
        if key.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
        }
    }

    /// The clusters that the objects are of, once per object.
    pub fn clusters(&self) -> Vec<String> {
        let mut clusters = Vec::new();
        for kind in &*self.kinds {
            let objects = kind.objects.read();
            clusters.extend(objects.iter().filter_map(|(key, seen)| cluster_of(key, seen)).map(str::to_owned));
        }
        clusters
    }
}

fn resource(kind: Kind) -> ApiResource {
    let [group, version, name, plural] = kind.resource();
    hub_calls::resource(group, version, name, plural)
}

// === impl Writers ===

impl Writers {
    /// Follows all kinds. Calls `notify` with the cluster of each object that was created, changed
    /// or deleted; with an empty name for a role that all clusters share. Never ends.
    pub async fn follow(self, client: Client, notify: impl Fn(&str) + Sync) {
        let notify: Notify<'_> = &notify;
        together::all(self.0.iter().map(|kind| kind.follow(client.clone(), notify).boxed())).await;
    }

    /// As if a watch had reported an object.
    #[cfg(test)]
    pub fn saw(&self, kind: Kind, object: &DynamicObject) {
        let of = self.0.iter().find(|of| of.kind == kind).unwrap();
        let (key, metadata) = (of.key(&object.metadata), object.metadata.clone());
        of.objects.write().insert(key, ObservedGrant::of(metadata, &object.data));
    }
}

// === impl OfKind ===

impl OfKind {
    fn new(kind: Kind) -> Self {
        Self { kind, objects: RwLock::default(), listed: watch::Sender::default() }
    }

    async fn follow(&self, client: Client, notify: Notify<'_>) {
        let resource = resource(self.kind);
        let what = format!("{} of clusters", resource.plural);
        let events = watcher(Api::<RawObject>::all_with(client, &resource), paged().labels(CLUSTER_LABEL));
        let mut listing = HashMap::new();
        follow::each(events, what, |event| self.take(event, &mut listing, notify)).await;
    }

    fn take(&self, event: Event<RawObject>, listing: &mut HashMap<Key, ObservedGrant>, notify: Notify<'_>) {
        match event {
            Event::Init => listing.clear(),
            Event::InitApply(object) => listing.extend(self.made(object)),
            Event::InitDone => self.list(mem::take(listing), notify),
            Event::Apply(object) => {
                let Some((key, seen)) = self.made(object) else { return };
                let before = self.objects.write().insert(key.clone(), seen.clone());
                // It may have been another cluster's, which lacks it now.
                before.iter().chain([&seen]).for_each(|seen| tell(&key, seen, notify));
            }
            Event::Delete(object) => {
                let Some((key, seen)) = self.made(object) else { return };
                let before = self.objects.write().remove(&key);
                before.iter().chain([&seen]).for_each(|seen| tell(&key, seen, notify));
            }
        }
    }

    /// Tells of all, and of those that are gone: what changed while no watch ran is not known.
    fn list(&self, listed: HashMap<Key, ObservedGrant>, notify: Notify<'_>) {
        let before = mem::replace(&mut *self.objects.write(), listed);
        self.listed.send_replace(true);
        let objects = self.objects.read();
        let is_news =
            |(key, seen): &(&Key, &ObservedGrant)| objects.get(*key).is_none_or(|now| now.cluster() != seen.cluster());
        for (key, seen) in objects.iter().chain(before.iter().filter(is_news)) {
            tell(key, seen, notify);
        }
    }

    fn key(&self, metadata: &ObjectMeta) -> Key {
        let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
        Key { kind: self.kind, namespace: namespace.unwrap_or_default(), name: name.unwrap_or_default() }
    }

    /// Only what acceptance may have made: a user that may write an object in a namespace may write
    /// many, as large as the hub takes. One whose contents are too large is unlike any that
    /// acceptance makes, and without them it still is.
    fn made(&self, object: RawObject) -> Option<(Key, ObservedGrant)> {
        let key = self.key(object.meta());
        if !acceptance::is_made(self.kind, &key.namespace, &key.name) {
            return None;
        }
        let most = if self.kind == Kind::Namespace { 0 } else { LARGEST };
        let DynamicObject { metadata, data, .. } = object.read_within(most);
        Some((key, ObservedGrant::of(metadata, &data)))
    }
}

/// Any user may leave the label empty on an object of their own, so of those only the shared roles
/// count.
fn tell(key: &Key, seen: &ObservedGrant, notify: Notify<'_>) {
    if let Some(cluster) = cluster_of(key, seen)
        && (!cluster.is_empty() || acceptance::is_common(&key.name))
    {
        notify(cluster);
    }
}

/// By the label, with which the hub selected it; or by its name, if it has too many labels to be
/// read. Otherwise a user could add labels and then change a right unnoticed.
fn cluster_of<'a>(key: &'a Key, seen: &'a ObservedGrant) -> Option<&'a str> {
    let unread = || if acceptance::is_common(&key.name) { Some("") } else { acceptance::made_for(key) };
    seen.cluster().or_else(unread)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use register::ocm::acceptance::Cluster;
    use serde_json::{Value, json};

    use super::*;
    use crate::calls::PAGE;
    use crate::scripted;

    const SUBJECTS: usize = 1_000;

    /// A binding whose contents have more bytes than are read.
    fn binding(namespace: &str, name: &str, cluster: &str) -> Value {
        let subject = json!({"kind": "User", "name": "u"});
        json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": "3", "labels": {CLUSTER_LABEL: cluster, "x": "y"}},
            "roleRef": {"kind": "Role", "name": "own"}, "subjects": vec![subject; SUBJECTS]})
    }

    /// A hub with these bindings, which says what it was asked for.
    fn hub(all: Vec<Value>, asked: Arc<Mutex<Vec<String>>>) -> Client {
        scripted::answering(move |request| {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let items: &[Value] = if path.ends_with("/rolebindings") { &all } else { &[] };
            asked.lock().push(format!("{path}?{query}"));
            let list = json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": items});
            let body = if query.contains("watch=true") { String::new() } else { list.to_string() };
            std::future::ready(scripted::text(200, body))
        })
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
            () = mirror.listed() => {}
        }
        let bindings = mirror.kinds.iter().find(|of| of.kind == Kind::RoleBinding).unwrap();
        let kept: Vec<_> = bindings.objects.read().keys().cloned().collect();
        assert_eq!(kept, std::slice::from_ref(&own.key));
        assert_eq!(*woken.lock(), ["c1"]);
        let found = mirror.read(&own.key, |seen| format!("{seen:?}")).unwrap();
        assert!(found.len() < 1000, "no more of it than is compared: {found}");
        assert_eq!(mirror.difference(own), Some(Difference::Whole), "it is not what it is to be");
        let asked = asked.lock();
        let page = format!("limit={PAGE}");
        assert!(asked.iter().all(|query| query.contains("watch=true") || query.contains(&page)), "{asked:?}");
    }

    fn raw(wanted: &DesiredGrant) -> RawObject {
        serde_json::from_value(wanted.document.clone()).unwrap()
    }

    /// The clusters that a mirror of one kind names.
    #[derive(Default)]
    struct Woken(Mutex<Vec<String>>);

    impl Woken {
        fn after(&self, events: impl IntoIterator<Item = Event<RawObject>>, of: &OfKind) -> Vec<String> {
            let mut listing = HashMap::new();
            for event in events {
                of.take(event, &mut listing, &|cluster: &str| self.0.lock().push(cluster.to_owned()));
            }
            let mut told = mem::take(&mut *self.0.lock());
            told.sort();
            told.dedup();
            told
        }
    }

    /// The watch says only what is there when it begins anew.
    #[tokio::test]
    async fn what_was_deleted_while_no_watch_ran_is_told() {
        let [c1, c2] = ["c1", "c2"].map(|name| {
            let granted = Cluster { name, uid: "u" }.granted(false);
            granted.into_iter().find(|wanted| wanted.key.name.ends_with(":tunnel")).unwrap()
        });
        let (mirror, Writers(kinds)) = Mirror::new(scripted::client(|_, _| None));
        let (roles, told) = (kinds.iter().find(|of| of.kind == Kind::ClusterRole).unwrap(), Woken::default());
        let list = |all: &[&DesiredGrant]| {
            let each = all.iter().map(|wanted| Event::InitApply(raw(wanted)));
            [Event::Init].into_iter().chain(each).chain([Event::InitDone]).collect::<Vec<_>>()
        };
        assert_eq!(told.after(list(&[&c1, &c2]), roles), ["c1", "c2"]);
        assert_eq!(told.after(list(&[&c2]), roles), ["c1", "c2"]);
        assert!(!mirror.has(&c1.key) && mirror.difference(&c2) == Some(Difference::Nothing));
        assert_eq!(told.after([Event::Delete(raw(&c2))], roles), ["c2"]);
        assert_eq!(mirror.difference(&c2), None);
    }

    /// Labels have no limit of their own: 160 KiB of them take more memory than metadata may.
    #[test]
    fn a_right_whose_labels_cannot_be_read_is_told_to_its_cluster() {
        let granted = Cluster { name: "c1", uid: "u" }.granted(false);
        for wanted in [&granted, &acceptance::common_roles(None)].into_iter().flatten() {
            let of = OfKind::new(wanted.key.kind);
            let (told, mut heavy) = (Woken::default(), wanted.clone());
            let labels = heavy.document["metadata"]["labels"].as_object_mut().unwrap();
            labels.extend((0..16_000).map(|number| (number.to_string(), "x".into())));
            let expected = if acceptance::is_common(&wanted.key.name) { "" } else { "c1" };
            for change in ["its labels", "anything else"] {
                assert_eq!(told.after([Event::Apply(raw(&heavy))], &of), [expected], "{change} of {:?}", wanted.key);
            }
            assert!(of.objects.read()[&wanted.key].cluster().is_none(), "its label is not known");
        }
    }

    #[test]
    fn a_right_whose_label_somebody_changes_is_told_to_its_cluster() {
        let granted = Cluster { name: "c1", uid: "u" }.granted(false);
        let wanted = granted.iter().find(|wanted| wanted.key.name.ends_with(":tunnel")).unwrap();
        let of = OfKind::new(wanted.key.kind);
        let (told, mut other) = (Woken::default(), wanted.clone());
        other.document["metadata"]["labels"][CLUSTER_LABEL] = "c2".into();
        assert_eq!(told.after([Event::Apply(raw(wanted))], &of), ["c1"]);
        assert_eq!(told.after([Event::Apply(raw(&other))], &of), ["c1", "c2"]);
    }
}
