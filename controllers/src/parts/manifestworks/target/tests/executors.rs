//! Rights that an executor lacks are reviewed again, and used once granted.

use std::sync::atomic::AtomicBool;

use delivery::manifests::{self, Lookup, Manifest, Resource};
use delivery::work::{Availability, ManifestWorkSpec};
use http::Method;

use super::*;
use crate::parts::manifestworks::complete::read;
use crate::parts::manifestworks::object::{Remembered, Setting, settle};

/// A member without objects that answers reviews with `may`.
fn granting(may: &Arc<AtomicBool>) -> Arc<Target> {
    let may = Arc::clone(may);
    let client = scripted::client(move |head, _| {
        Some(match (&head.method, head.uri.path()) {
            (_, REVIEWS) => (201, json!({"status": {"allowed": may.load(Ordering::Relaxed)}})),
            (&Method::POST, _) => (201, json!({"metadata": {"name": "a", "uid": "u"}})),
            _ => (404, serde_json::from_str(MISSING).unwrap()),
        })
    });
    Arc::new(Target::new(member(client), &shared()))
}

fn config_map() -> Vec<Manifest> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
    let resource = Resource { name: "configmaps".into(), is_namespaced: true };
    manifests::read(&[map], |_, _, _| Lookup::Found(resource.clone()))
}

#[tokio::test(start_paused = true)]
async fn what_an_executor_may_not_do_yet_is_done_a_minute_later_if_it_may_then() {
    let may = Arc::new(AtomicBool::new(false));
    let (target, owner, spec) = (granting(&may), owner(), ManifestWorkSpec::default());
    let executor = Executor { namespace: "n".into(), name: "e".into() };
    let (executor, metrics) = (Some(&executor), &target.member.metrics);
    let setting = Setting { target: &target, work: "w", spec: &spec, owner: &owner, executor, is_kept: true, metrics };
    let all = config_map();
    let refused = settle(setting, &all[0], Remembered::default(), false).await.unwrap();
    let told = format!("{:?}", refused.result);
    assert!(told.contains("system:serviceaccount:n:e may not create it"), "{told}");
    let again = refused.remembered.again.unwrap() - Instant::now();
    assert_eq!(again, Duration::from_mins(1));
    may.store(true, Ordering::Relaxed);
    tokio::time::advance(again).await;
    let applied = settle(setting, &all[0], refused.remembered, false).await.unwrap();
    assert!(applied.result.is_ok() && applied.remembered.again.is_none(), "{applied:?}");
}

/// A user that may change a work may have completed it for another executor.
#[tokio::test(start_paused = true)]
async fn what_is_complete_is_read_for_nobody_who_may_not_see_it() {
    let may = Arc::new(AtomicBool::new(false));
    let (target, owner, spec) = (granting(&may), owner(), ManifestWorkSpec::default());
    let executor = Executor { namespace: "n".into(), name: "e".into() };
    let (executor, metrics) = (Some(&executor), &target.member.metrics);
    let setting = Setting { target: &target, work: "w", spec: &spec, owner: &owner, executor, is_kept: true, metrics };
    let all = config_map();
    let refused = read(setting, &all[0], Remembered::default()).await.unwrap();
    let told = format!("{:?}", refused.availability);
    assert!(told.contains("system:serviceaccount:n:e may not get it"), "{told}");
    let again = refused.remembered.again.unwrap() - Instant::now();
    assert_eq!(again, Duration::from_mins(1));
    may.store(true, Ordering::Relaxed);
    tokio::time::advance(again).await;
    let found = read(setting, &all[0], refused.remembered).await.unwrap();
    assert!(matches!(found.availability, Availability::NotFound) && found.remembered.again.is_none(), "{found:?}");
}
