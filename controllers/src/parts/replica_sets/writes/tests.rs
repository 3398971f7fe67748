//! Creates without an answer, on a hub in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube::Client;
use parking_lot::{Mutex, RwLock};
use prometheus_client::registry::Registry;

use super::*;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::parts::hub_calls::LeaderClient;
use crate::parts::replica_sets::world::World;
use crate::parts::worker::Tries;
use crate::scripted;
use crate::term::Term;

/// The works of a namespace.
#[derive(Default)]
struct Works {
    all: BTreeMap<String, Value>,
    /// Creates get no answer from now on; [`Works::arrive`] carries them out.
    is_silent: bool,
    late: Vec<Value>,
    /// Another writer updates its quota each time.
    is_contended: bool,
    creates: usize,
}

// === impl Works ===

impl Works {
    /// None if there is no answer.
    fn answer(&mut self, method: &Method, body: Value) -> Option<(u16, Value)> {
        if *method == Method::GET {
            let of_sets = |work: &&Value| work["metadata"]["labels"][SET_LABEL].is_string();
            let items: Vec<&Value> = self.all.values().filter(of_sets).collect();
            let api = "work.open-cluster-management.io/v1";
            return Some((200, json!({"kind": "ManifestWorkList", "apiVersion": api, "metadata": {}, "items": items})));
        }
        self.creates += 1;
        if self.is_contended {
            return Some((409, json!({"kind": "Status", "apiVersion": "v1", "code": 409, "reason": "Conflict"})));
        }
        if self.is_silent {
            self.late.push(body);
            return None;
        }
        Some(self.create(body))
    }

    fn create(&mut self, mut work: Value) -> (u16, Value) {
        let metadata = &mut work["metadata"];
        if metadata["name"].is_null() {
            let stem = metadata["generateName"].as_str().unwrap_or_default();
            metadata["name"] = format!("{stem}-made-up-{}", self.all.len()).into();
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        if self.all.contains_key(&name) {
            return (409, json!({"kind": "Status", "apiVersion": "v1", "code": 409, "reason": "AlreadyExists"}));
        }
        metadata["resourceVersion"] = (self.all.len() + 1).to_string().into();
        self.all.insert(name, work.clone());
        (201, work)
    }

    fn arrive(&mut self) {
        self.is_silent = false;
        for work in std::mem::take(&mut self.late) {
            self.create(work);
        }
    }
}

fn client(works: &Arc<Mutex<Works>>) -> Client {
    let works = Arc::clone(works);
    scripted::client(move |head, body| works.lock().answer(&head.method, body))
}

fn deployer(works: &Arc<Mutex<Works>>) -> Deployer {
    let metrics = Metrics::register(&mut Registry::default(), Arc::default());
    let mut world = World::new(false);
    let set = json!({"metadata": {"namespace": "team", "name": "app", "uid": "s", "resourceVersion": "1"},
        "spec": {"manifestWorkTemplate": {"workload": {"manifests": []}}, "placementRefs": [{"name": "p"}]}});
    world.put(Of::Set, set, worker::moment());
    Deployer {
        hub: LeaderClient { client: client(works), may_write: Arc::new(|| Duration::from_mins(1)) },
        world: Arc::new(RwLock::new(world)),
        events: Events::start(client(works), metrics.events_left_out.clone(), Term::endless()),
        metrics,
        tries: Tries::default(),
    }
}

fn key() -> Key {
    ("team".to_owned(), "app".to_owned())
}

async fn put(deployer: &Deployer) -> Result<(), CallError> {
    let set = Arc::clone(&deployer.world.read().set(&key()).expect("it is there").set);
    let due = Due { cluster: "c1".to_owned(), placement: "p".to_owned(), change: Change::Create };
    deployer.put(&key(), &set, &due).await
}

#[tokio::test(start_paused = true)]
async fn a_create_that_arrives_after_it_was_looked_for_makes_no_second_work() {
    let works = Arc::new(Mutex::new(Works { is_silent: true, ..Works::default() }));
    let deployer = deployer(&works);
    assert!(matches!(put(&deployer).await, Err(CallError::Timeout)));
    deployer.make_sure(&key()).await.unwrap();
    assert_eq!(deployer.world.read().works(&key()).count(), 0, "it is on its way");
    works.lock().arrive();
    put(&deployer).await.unwrap();
    let names: Vec<String> = works.lock().all.keys().cloned().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(deployer.world.read().works(&key()).map(|work| work.name.clone()).collect::<Vec<_>>(), names);
}

#[tokio::test(start_paused = true)]
async fn a_work_of_that_name_that_is_not_the_sets_is_left_alone() {
    let works = Arc::new(Mutex::new(Works::default()));
    put(&deployer(&works)).await.unwrap();
    let theirs = {
        let mut works = works.lock();
        let (name, work) = works.all.first_key_value().map(|(name, work)| (name.clone(), work.clone())).unwrap();
        let bare = json!({"metadata": {"name": name}, "spec": work["spec"]});
        works.all.insert(name.clone(), bare.clone());
        (name, bare)
    };
    put(&deployer(&works)).await.unwrap();
    let works = works.lock();
    assert_eq!((works.all.len(), &works.all[&theirs.0]), (2, &theirs.1));
    assert!(works.all.contains_key("app-made-up-1"), "the cluster has no work");
}

#[tokio::test]
async fn a_conflict_that_is_not_of_the_name_is_no_reason_for_another_name() {
    let works = Arc::new(Mutex::new(Works { is_contended: true, ..Works::default() }));
    let deployer = deployer(&works);
    let answer = put(&deployer).await;
    assert!(matches!(&answer, Err(error) if error.is_conflict()), "{answer:?}");
    assert_eq!(works.lock().creates, 1);
    works.lock().is_contended = false;
    put(&deployer).await.unwrap();
    assert!(!works.lock().all.keys().any(|name| name.contains("made-up")));
}
