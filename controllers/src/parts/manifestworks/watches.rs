//! The watches of the hub: works, and which clusters are ours.

use std::collections::HashSet;

use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt as _};

use super::clusters::{DELIVERY_ANNOTATION, Mode};
use super::work::{WORKS, key};
use super::{Part, shelf};
use crate::calls::{paged, watcher};
use crate::feed::{crd, follow};
use crate::parts::catch_up::WATCH;
use crate::raw::{self, RawObject};
use crate::sources::MANAGED_CLUSTERS;

type Meta = raw::Meta<DynamicObject>;

/// Follows the works. Never ends.
pub async fn works(part: &Part, writer: &mut Writer<DynamicObject>) {
    let resource = crd::served(&WORKS, &part.hub.client).await;
    let api: Api<RawObject> = Api::all_with(part.hub.client.clone(), &resource);
    let config = paged().timeout(WATCH);
    let mut listed = HashSet::new();
    let apply = |event| {
        let event = part.shelf.keep(event, &part.store);
        let is_news = is_news(part, &event);
        writer.apply_watcher_event(&event);
        let is_edited = if let Event::Apply(object) = &event {
            part.memories.saw(&key(object), object.metadata.resource_version.as_deref().unwrap_or_default())
        } else {
            false
        };
        match &event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => drop(listed.insert(key(object))),
            Event::InitDone => {
                for gone in part.memories.missing(|key| listed.contains(key)) {
                    part.leave(&gone);
                }
                for (namespace, name) in std::mem::take(&mut listed) {
                    part.wakes.push(&namespace, &name);
                }
            }
            Event::Apply(object) if is_news || is_edited => part.wakes.push(&key(object).0, &key(object).1),
            Event::Apply(_) => {}
            Event::Delete(object) => part.leave(&key(object)),
        }
    };
    follow::each(raw::packed(api, config), "ManifestWorks", apply).await;
}

/// Whether a work must be processed, regardless of who wrote it: we write its status.
fn is_news(part: &Part, event: &Event<DynamicObject>) -> bool {
    let Event::Apply(new) = event else { return false };
    let Some(old) = part.known(&key(new)) else { return true };
    let said = |object: &DynamicObject| {
        let metadata = &object.metadata;
        (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp.clone(), shelf::mark(object))
    };
    said(new) != said(&old)
}

/// Follows which clusters are ours. Never ends.
pub async fn clusters(part: &Part) {
    let resource = crd::served(&MANAGED_CLUSTERS, &part.hub.client).await;
    let api: Api<Meta> = Api::all_with(part.hub.client.clone(), &resource);
    let config = paged().timeout(WATCH);
    let mut listed = HashSet::new();
    let apply = |event: Event<Meta>| match event {
        Event::Init => listed.clear(),
        Event::InitApply(cluster) => {
            listed.insert(cluster.name_any());
            put(part, &cluster);
        }
        Event::InitDone => {
            let there = std::mem::take(&mut listed);
            let gone = part.clusters.missing(|cluster| there.contains(cluster));
            part.clusters.listed(there);
            for gone in gone {
                set(part, &gone, None);
            }
        }
        Event::Apply(cluster) => put(part, &cluster),
        Event::Delete(cluster) => {
            part.clusters.lost(&cluster.name_any());
            set(part, &cluster.name_any(), None);
        }
    };
    follow::each(watcher(api, config), "ManagedClusters to deliver to", apply).await;
}

/// Retries clusters whose members answered another request. Never ends.
pub async fn answers(part: &Part) {
    loop {
        let (_, cluster) = part.answered.next().await;
        if part.targets.known(&cluster).is_some_and(|target| target.answered_another()) {
            part.wake_in(&cluster);
        }
    }
}

fn put(part: &Part, cluster: &Meta) {
    let name = cluster.name_any();
    part.clusters.saw(&name, cluster.metadata.deletion_timestamp.is_some());
    let mode = mode_of(cluster);
    set(part, &name, mode);
    // The hub's object of a cluster that did not answer has changed: the cluster may be back.
    if mode.is_some()
        && let Some(target) = part.targets.known(&name)
        && target.rest().is_some()
        && target.try_now()
    {
        part.wake_in(&name);
    }
}

/// The mode that a cluster says. It is read even of annotations that are too heavy.
fn mode_of(cluster: &Meta) -> Option<Mode> {
    Mode::read(cluster.annotations().get(DELIVERY_ANNOTATION).map(String::as_str))
}

fn set(part: &Part, cluster: &str, mode: Option<Mode>) {
    if !part.clusters.put(cluster, mode) {
        return;
    }
    tracing::info!(cluster, ?mode, "delivery mode of a cluster");
    if mode.is_none() {
        for key in part.memories.of_cluster(cluster) {
            part.leave(&key);
        }
        part.targets.forget(cluster, || part.clusters.mode(cluster).is_some());
        part.metrics.delivery.forget_cluster(cluster);
    }
    part.wake_in(cluster);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica that starts then must know it too.
    #[test]
    fn a_cluster_whose_annotations_are_too_heavy_keeps_its_mode() {
        let read = |setting: &str, others: usize| -> Meta {
            let others = (0..others).map(|number| format!(r#""{number}": "","#)).collect::<Vec<_>>().concat();
            let setting = format!(r#""{DELIVERY_ANNOTATION}": "{setting}""#);
            serde_json::from_str(&format!(r#"{{"metadata": {{"name": "c", "annotations": {{{others}{setting}}}}}}}"#))
                .unwrap()
        };
        for others in [0, 30_000] {
            assert_eq!(read("push", others).left_out, (others > 0).then_some(raw::ANNOTATIONS));
            assert_eq!(mode_of(&read("push", others)), Some(Mode::Push));
            assert_eq!(mode_of(&read("no", others)), None);
        }
    }
}
