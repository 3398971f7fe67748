//! The same input is not derived twice.

use std::sync::atomic::{AtomicUsize, Ordering};

use kube::api::DynamicObject;
use register::reading::{Reading, SecretObject, SecretReference};
use serde_json::Value;

use super::*;
use crate::sources::Reader;

/// A reader that counts how often it derived a cluster.
pub struct Counted {
    pub reader: Arc<dyn Reader>,
    pub times: Arc<AtomicUsize>,
}

impl Reader for Counted {
    fn refers_to(&self, object: &Value) -> Vec<SecretReference> {
        self.reader.refers_to(object)
    }

    fn read(&self, object: &Value, secrets: &[Option<SecretObject>]) -> Reading {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.reader.read(object, secrets)
    }

    fn prune(&self, object: &mut DynamicObject) {
        self.reader.prune(object);
    }
}

/// Waits until the source's Secret has been read once more.
async fn looked_at(hub: &Hub, before: usize) {
    until("another look", || hub.asked(Call::Read, FLEET).len() > before).await;
    sleep(LOOK).await;
}

#[tokio::test(start_paused = true)]
async fn a_rewrite_that_changes_nothing_is_recognized_and_any_other_is_not() {
    let (hub, leader) = registered(1).await;
    let derived = || leader.derived.load(Ordering::Relaxed);
    let (before, version) = (derived(), hub.cluster("c0"));
    for _ in 0..3 {
        let looks = hub.asked(Call::Read, FLEET).len();
        hub.annotate(FLEET, "c0");
        looked_at(&hub, looks).await;
    }
    assert_eq!((derived(), hub.cluster("c0")), (before, version.clone()), "nothing was changed");
    assert_eq!((leader.registered(), writes(&hub)), (1, 0));
    // The same cluster with other labels.
    hub.label(FLEET, "c0", "team", "a");
    until("another label", || hub.cluster("c0") != version).await;
    assert_eq!((derived() - before, writes(&hub)), (1, 1));
    // The Secret that was derived is gone.
    hub.delete(CLUSTERS, "c0");
    until("the Secret once more", || hub.cluster("c0").is_some()).await;
    assert_eq!((derived() - before, writes(&hub)), (2, 2));
    let version = hub.cluster("c0");
    hub.put_source("c0", "second");
    until("the other token", || hub.cluster("c0") != version).await;
    assert_eq!((derived() - before, writes(&hub)), (3, 3));
}

/// After a failed write, the next event writes it.
#[tokio::test(start_paused = true)]
async fn what_was_derived_and_not_written_is_written() {
    let (hub, leader) = registered(1).await;
    let version = hub.cluster("c0");
    hub.fail(Call::Write, CLUSTERS, [Fault::Busy(120)]);
    hub.put_source("c0", "second");
    until("a try", || writes(&hub) == 1).await;
    hub.annotate(FLEET, "c0");
    until("the other token", || hub.cluster("c0") != version).await;
    assert_eq!((leader.registered(), hub.is_sound()), (1, true));
}
