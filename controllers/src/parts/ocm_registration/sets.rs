//! Maintains `ManagedClusterSets` and their bindings: the sets that every hub has, the conditions
//! of each set, and those of each binding.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::try_join_all;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt as _};
use net::backoff::Backoff;
use placement::labels::Labels;
use placement::objects::ManagedClusterSet;
use register::ocm::condition::{self, Condition};
use register::ocm::{DEFAULT_SET, GROUP};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::hub_calls::{CallError, LeaderClient, now_text, resource, value};
use crate::calls::paged;
use crate::feed::follow;
use crate::raw::{self, RawObject, large};

/// With the value `false`, the set is maintained by a person.
const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";
/// Delay that counts clusters together that join together.
const PAUSE: Duration = Duration::from_millis(500);

pub struct Sets {
    hub: LeaderClient,
    clusters: Store<DynamicObject>,
    set_resource: ApiResource,
    binding_resource: ApiResource,
    known: Store<DynamicObject>,
    bindings: Store<DynamicObject>,
    changed: Notify,
}

/// The writers of the stores.
pub struct Writers([Writer<DynamicObject>; 2]);

// === impl Sets ===

impl Sets {
    pub fn new(hub: LeaderClient, clusters: Store<DynamicObject>) -> (Self, Writers) {
        let set_resource = resource(GROUP, "v1beta2", "ManagedClusterSet", "managedclustersets");
        let binding_resource = resource(GROUP, "v1beta2", "ManagedClusterSetBinding", "managedclustersetbindings");
        let writers = [&set_resource, &binding_resource].map(|resource| Writer::new(resource.clone()));
        let [known, bindings] = [&writers[0], &writers[1]].map(Writer::as_reader);
        let changed = Notify::new();
        (Self { hub, clusters, set_resource, binding_resource, known, bindings, changed }, Writers(writers))
    }

    /// Requests a check after clusters or their labels changed.
    pub fn look(&self) {
        self.changed.notify_one();
    }

    /// Maintains the sets. Never ends.
    pub async fn keep(&self, Writers([sets, bindings]): Writers) {
        let client = &self.hub.client;
        tokio::join!(
            self.follow(client.clone(), &self.set_resource, sets),
            self.follow(client.clone(), &self.binding_resource, bindings),
            self.correct_all()
        );
    }

    async fn follow(&self, client: Client, resource: &ApiResource, mut writer: Writer<DynamicObject>) {
        let api = Api::<RawObject>::all_with(client, resource);
        let apply = |event: Event<DynamicObject>| {
            let event = event.modify(prune);
            writer.apply_watcher_event(&event);
            if !matches!(event, Event::Init | Event::InitApply(_)) {
                self.look();
            }
        };
        follow::each(raw::watcher(api, paged()), &resource.plural, apply).await;
    }

    async fn correct_all(&self) {
        follow::stored(&self.clusters).await;
        follow::stored(&self.known).await;
        follow::stored(&self.bindings).await;
        let mut failures = 0;
        loop {
            match self.correct().await {
                Ok(()) => {
                    failures = 0;
                    self.changed.notified().await;
                    sleep(PAUSE).await;
                }
                Err(error) if error.is_conflict() => sleep(PAUSE).await,
                Err(error) => {
                    tracing::warn!(%error, "cannot keep the sets of clusters");
                    sleep(Backoff::HUB.wait(failures)).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    async fn correct(&self) -> Result<(), CallError> {
        let sets: Vec<Value> = self.known.state().iter().map(|set| value(set)).collect();
        try_join_all(of_every_hub().map(|(name, selector)| self.correct_own(&sets, name, selector))).await?;
        for (set, count) in sets.iter().zip(self.counts(&sets)) {
            self.put_condition(&self.set_resource, set, &Condition::empty(count)).await?;
        }
        for binding in self.bindings.state().iter().map(|binding| value(binding)) {
            let is_there = sets.iter().any(|set| set["metadata"]["name"] == binding["spec"]["clusterSet"]);
            self.put_condition(&self.binding_resource, &binding, &Condition::bound(is_there)).await?;
        }
        Ok(())
    }

    /// Numbers of clusters in `sets`.
    fn counts(&self, sets: &[Value]) -> Vec<usize> {
        let clusters = self.clusters.state();
        counts(sets, clusters.iter().map(|cluster| cluster.labels()))
    }

    async fn correct_own(&self, sets: &[Value], name: &str, selector: Value) -> Result<(), CallError> {
        let api: Api<DynamicObject> = Api::all_with(self.hub.client.clone(), &self.set_resource);
        let Some(set) = sets.iter().find(|set| set["metadata"]["name"] == name) else {
            let mut set = DynamicObject::new(name, &self.set_resource);
            set.data = json!({"spec": {"clusterSelector": selector}});
            return match self.hub.write(api.create(&PostParams::default(), &set)).await {
                Err(error) if error.is_conflict() => Ok(()),
                answer => answer.map(drop),
            };
        };
        let is_a_persons = set["metadata"]["annotations"].get(AUTO_UPDATE).is_some_and(|value| value == "false");
        if is_a_persons || large::is_marked(set) || set["spec"]["clusterSelector"] == selector {
            return Ok(());
        }
        let change = json!({"metadata": {"resourceVersion": set["metadata"]["resourceVersion"]},
            "spec": {"clusterSelector": selector}});
        self.hub.merge(&api, name, &change).await.map(drop)
    }

    async fn put_condition(
        &self,
        resource: &ApiResource,
        object: &Value,
        condition: &Condition,
    ) -> Result<(), CallError> {
        let metadata = &object["metadata"];
        let is_leaving = !metadata["deletionTimestamp"].is_null();
        let Some(all) = condition::changed(object, std::slice::from_ref(condition), &now_text()) else { return Ok(()) };
        if is_leaving || large::is_marked(object) {
            return Ok(());
        }
        let client = self.hub.client.clone();
        let api: Api<DynamicObject> = match metadata["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        };
        let change =
            json!({"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"conditions": all}});
        let name = metadata["name"].as_str().unwrap_or_default();
        super::hub_calls::found(self.hub.merge_status(&api, name, &change).await).map(drop)
    }
}

/// The sets that every hub has, and their selectors.
fn of_every_hub() -> [(&'static str, Value); 2] {
    [
        (DEFAULT_SET, json!({"selectorType": "ExclusiveClusterSetLabel"})),
        ("global", json!({"selectorType": "LabelSelector", "labelSelector": {}})),
    ]
}

/// Numbers of the clusters with these labels in each of `sets`, by the rules of the scheduler. A
/// selector that the API would refuse selects none. While clusters join, all are counted twice a
/// second: so equal labels are copied and judged once. There is one copy at a time, because copies
/// for all clusters would take much memory.
fn counts<'c>(sets: &[Value], clusters: impl Iterator<Item = &'c BTreeMap<String, String>>) -> Vec<usize> {
    let sets: Vec<ManagedClusterSet> = sets.iter().map(ManagedClusterSet::read).collect();
    let mut alike = HashMap::<&BTreeMap<String, String>, usize>::new();
    for labels in clusters {
        *alike.entry(labels).or_default() += 1;
    }
    let mut counts = vec![0; sets.len()];
    for (labels, clusters) in alike {
        let labels: Labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        for (count, _) in counts.iter_mut().zip(&sets).filter(|(_, set)| set.selects(&labels)) {
            *count += clusters;
        }
    }
    counts
}

/// Leaves out what is not read. Every user that may bind sets in a namespace writes these objects.
fn prune(object: &mut DynamicObject) {
    object.managed_fields_mut().clear();
    (object.metadata.finalizers, object.metadata.owner_references) = (None, None);
    object.labels_mut().clear();
    object.annotations_mut().retain(|key, _| key == AUTO_UPDATE);
    large::bound(object, &[], &[]);
}

#[cfg(test)]
mod tests {
    use register::ocm::SET_LABEL;

    use super::*;

    #[test]
    fn a_set_counts_the_clusters_that_the_scheduler_chooses_among() {
        let labels = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let clusters = [labels(SET_LABEL, "gold"), labels("env", "prod")];
        let set = |selector: Value| json!({"metadata": {"name": "gold"}, "spec": {"clusterSelector": selector}});
        let by_labels = |selector: Value| set(json!({"selectorType": "LabelSelector", "labelSelector": selector}));
        let expression = |operator: &str, values: &[&str]| {
            by_labels(json!({"matchExpressions": [{"key": "env", "operator": operator, "values": values}]}))
        };
        for (set, expected) in [
            (set(json!({})), 1),
            (set(json!({"selectorType": "ExclusiveClusterSetLabel"})), 1),
            (set(json!({"selectorType": "Other"})), 0),
            (set(json!({"selectorType": "LabelSelector"})), 0),
            (by_labels(json!({})), 2),
            (by_labels(json!({"matchLabels": {"env": "prod"}})), 1),
            (by_labels(json!({"matchLabels": {"env": "test"}})), 0),
            (expression("In", &["prod"]), 1),
            (expression("NotIn", &["prod"]), 1),
            (expression("Exists", &[]), 1),
            (expression("DoesNotExist", &[]), 1),
            // The API refuses these, and so does the scheduler.
            (expression("NotIn", &[]), 0),
            (expression("DoesNotExist", &["prod"]), 0),
            (expression("Gt", &["1"]), 0),
            (json!({"metadata": {"name": null}}), 0),
        ] {
            // Clusters with equal labels count one by one.
            for times in [1, 3] {
                let all = clusters.iter().cycle().take(times * clusters.len());
                assert_eq!(counts(std::slice::from_ref(&set), all), [times * expected], "{set}");
            }
        }
    }
}
