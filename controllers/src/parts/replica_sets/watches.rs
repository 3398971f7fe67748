//! The watches, and what they queue.

use futures_util::future::join_all;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::Value;

use super::Shared;
use super::deployer::Deployer;
use super::kinds::Of;
use super::world::Woken;
use crate::calls::{paged, value};
use crate::parts::{watched, worker};

/// Follows all kinds. Never ends.
pub async fn follow(shared: &Shared, deployer: &Deployer, writer: Writer<DynamicObject>) {
    let mut writer = Some(writer);
    join_all(Of::ALL.map(|of| {
        let mut sets = if of == Of::Set { writer.take() } else { None };
        let config = paged();
        // Works without a set are ignored here.
        let config = if of == Of::Work { config.labels(delivery::work::replica_set::SET_LABEL) } else { config };
        let take = move |event| take(shared, deployer, of, &mut sets, event);
        watched::follow(of.kind(), shared.hub.client.clone(), config, take)
    }))
    .await;
}

fn take(
    shared: &Shared,
    deployer: &Deployer,
    of: Of,
    sets: &mut Option<Writer<DynamicObject>>,
    event: Event<DynamicObject>,
) {
    let woken = {
        let mut world = shared.world.write();
        match &event {
            Event::Init => {
                world.begin_list(of);
                Woken::new()
            }
            Event::InitApply(object) => world.put_listed(of, pruned(object), worker::moment()),
            Event::InitDone => world.end_list(of, worker::moment()),
            Event::Apply(object) => world.put(of, pruned(object), worker::moment()),
            Event::Delete(object) => {
                world.remove(of, &worker::key(object), object.resource_version().as_deref(), worker::moment())
            }
        }
    };
    let is_listed = matches!(event, Event::InitDone);
    if let Some(writer) = sets {
        forget(shared, deployer, writer, &event);
        writer.apply_watcher_event(&event.modify(watched::name_only));
    }
    for (namespace, name) in woken {
        shared.wakes.push(&namespace, &name);
    }
    if is_listed {
        shared.listed[of.index()].send_replace(true);
    }
}

/// Sets that are gone with this event.
fn forget(shared: &Shared, deployer: &Deployer, writer: &Writer<DynamicObject>, event: &Event<DynamicObject>) {
    let candidates = match event {
        Event::Delete(set) => vec![worker::key(set)],
        Event::InitDone => writer.as_reader().state().iter().map(|set| worker::key(set)).collect(),
        _ => Vec::new(),
    };
    for key in candidates {
        if shared.world.read().set(&key).is_none() {
            deployer.forget(&key);
        }
    }
}

/// Without the statuses of a work's objects, which are not needed.
fn pruned(object: &DynamicObject) -> Value {
    let mut object = value(object);
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("resourceStatus");
    }
    object
}
