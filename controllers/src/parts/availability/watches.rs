//! The watch of clusters. It fills the store and the queue.

use std::collections::HashSet;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use register::ocm::delivery::DELIVERY_ANNOTATION;
use serde_json::{Value, json};

use super::judge::Judge;
use crate::calls::paged;
use crate::parts::watched;
use crate::raw::large;
use crate::sources::MANAGED_CLUSTERS;
use crate::wakes::Wakes;

/// Follows the clusters. Never ends.
pub async fn follow(judge: &Judge, wakes: &Wakes, mut writer: Writer<DynamicObject>) {
    let config = paged();
    let mut known = HashSet::new();
    let take = |event: Event<DynamicObject>| {
        let event = event.modify(prune);
        writer.apply_watcher_event(&event);
        match event {
            Event::Init => {}
            Event::InitApply(cluster) | Event::Apply(cluster) => {
                judge.tell_too_large(&cluster);
                wakes.push("", &cluster.name_any());
                known.insert(cluster.name_any());
            }
            Event::InitDone => {
                let there: HashSet<String> =
                    writer.as_reader().state().iter().map(|cluster| cluster.name_any()).collect();
                for name in known.difference(&there) {
                    judge.forget(name);
                }
                // The store gets a list only when it is complete.
                for name in &there {
                    wakes.push("", name);
                }
                known = there;
            }
            Event::Delete(cluster) => {
                judge.forget(&cluster.name_any());
                known.remove(&cluster.name_any());
            }
        }
    };
    watched::follow(&MANAGED_CLUSTERS, judge.hub.client.clone(), config, take).await;
}

/// Removes fields that are not read, because an agent may write a mebibyte into its own object. All
/// conditions stay, because the list is written as a whole, unless the cluster is too large.
fn prune(cluster: &mut DynamicObject) {
    cluster.managed_fields_mut().clear();
    (cluster.metadata.finalizers, cluster.metadata.owner_references) = (None, None);
    cluster.labels_mut().clear();
    cluster.annotations_mut().retain(|key, _| key == DELIVERY_ANNOTATION);
    let kept = |part: &str, fields: &[&str]| -> Value {
        let of = |field: &&str| Some(((*field).to_owned(), cluster.data.get(part)?.get(*field)?.clone()));
        fields.iter().filter_map(of).collect::<serde_json::Map<_, _>>().into()
    };
    let (spec, status) =
        (kept("spec", &["hubAcceptsClient", "leaseDurationSeconds", "taints"]), kept("status", &["conditions"]));
    let marked = large::marked(cluster);
    cluster.data = json!({"spec": spec, "status": status});
    large::mark(&mut cluster.data, marked);
    large::bound(cluster, &[], &["hubAcceptsClient", "leaseDurationSeconds"]);
}

#[cfg(test)]
mod tests {
    use register::ocm::condition::AVAILABLE;

    use super::*;

    #[test]
    fn an_agent_escapes_no_judgement_by_what_it_writes_unless_its_metadata_is_cut() {
        let mut cluster = DynamicObject::new("c1", &crate::parts::hub_calls::managed_clusters());
        cluster.annotations_mut().insert(DELIVERY_ANNOTATION.to_owned(), "push".to_owned());
        let padding = json!({"type": "Padding", "status": "True", "message": "m".repeat(large::LARGEST)});
        let available = json!({"type": AVAILABLE, "status": "True"});
        let taints = json!([{"key": "k", "effect": "NoSelect"}]);
        cluster.data = json!({"spec": {"hubAcceptsClient": true, "taints": taints}, "status": {"conditions": [padding, available]}});
        prune(&mut cluster);
        assert_eq!(cluster.data["spec"], json!({"hubAcceptsClient": true, "taints": taints}));
        assert_eq!((&cluster.data["status"]["conditions"], cluster.annotations().len()), (&json!([available]), 1));
        assert!(large::excess(&cluster).is_some() && large::is_judged(&cluster));
        // What was cut may hide how it is delivered to.
        cluster.data = json!({"spec": {}});
        large::mark(&mut cluster.data, Some("its annotations".to_owned()));
        prune(&mut cluster);
        assert_eq!(large::excess(&cluster).as_deref(), Some("its annotations"));
        assert!(!large::is_judged(&cluster) && cluster.annotations().is_empty());
    }

    #[test]
    fn what_is_looked_at_and_what_is_written_whole_stays() {
        let conditions = json!([{"type": AVAILABLE, "status": "True"}, {"type": "Other", "status": "False"}]);
        let mut cluster = DynamicObject::new("c1", &crate::parts::hub_calls::managed_clusters());
        cluster.annotations_mut().extend([DELIVERY_ANNOTATION, "other"].map(|key| (key.to_owned(), "push".to_owned())));
        cluster.data = json!({"spec": {"leaseDurationSeconds": 5, "taints": [{"key": "a"}], "hubAcceptsClient": true,
            "managedClusterClientConfigs": [{"url": "https://c1"}]}, "status": {"conditions": conditions, "capacity": {"cpu": "1"}}});
        prune(&mut cluster);
        let kept = json!({"spec": {"leaseDurationSeconds": 5, "taints": [{"key": "a"}], "hubAcceptsClient": true},
            "status": {"conditions": conditions}});
        assert_eq!((&cluster.data, cluster.annotations().len()), (&kept, 1));
    }
}
