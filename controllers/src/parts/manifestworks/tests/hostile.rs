//! Authors of works in one namespace, and a member, that would make these controllers keep more
//! than fits in memory.

use delivery::condition;
use delivery::work::{APPLIED_FINALIZER, kind};
use http::Method;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::parts::manifestworks::allowance::weighs;
use crate::parts::manifestworks::remembering::OBJECT;
use crate::parts::manifestworks::removal::MOST_AT_ONCE;
use crate::parts::manifestworks::shelf::MemoryLimits;
use crate::parts::manifestworks::target::{KEPT, REMEMBERED};
use crate::scripted;

const GROUP: &str = "work.open-cluster-management.io";
const APPLIED: &str = "/appliedmanifestworks/";
/// Works of one namespace.
const WORKS: usize = 60;
/// Manifests of works, and the room for their state, where only the proportions count: a tenth of
/// the largest takes a tenth of the time.
const MANIFESTS: usize = MOST_MANIFESTS / 10;
const OF_OBJECTS: MemoryLimits = tenth(REMEMBERED);
const OF_STATUSES: MemoryLimits = tenth(KEPT);

const fn tenth(of: MemoryLimits) -> MemoryLimits {
    MemoryLimits { in_all: of.in_all / 10, of_one: of.of_one / 10 }
}

/// A hub that is also its member, and the requests to it.
#[derive(Clone)]
struct Planes(Arc<Mutex<State>>);

struct State {
    /// Limit of a status in bytes, above which it is refused.
    largest: usize,
    /// It accepts no status.
    is_broken: bool,
    /// The applied objects that the member lists.
    listed: Vec<Value>,
    /// Statuses that were written, and the size in bytes of each refused one.
    statuses: Vec<Value>,
    refused: Vec<usize>,
    /// Requests for objects.
    looks: usize,
}

fn planes() -> Planes {
    let state =
        State { largest: usize::MAX, is_broken: false, listed: vec![], statuses: vec![], refused: vec![], looks: 0 };
    Planes(Arc::new(Mutex::new(state)))
}

fn no(code: u16, message: &str) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "x" };
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message, "details": {"name": "x", "kind": "y"}}),
    )
}

// === impl Planes ===

impl Planes {
    fn client(&self) -> Client {
        let planes = self.clone();
        scripted::client(move |head, said| Some(planes.0.lock().answer(&head.method, head.uri.path(), &said)))
    }

    fn part(&self) -> (Part, Writer<DynamicObject>) {
        let (mut part, writer) = part(&Hub::default());
        part.hub.client = self.client();
        part.members = Fleet::new(self.client());
        (part, writer)
    }

    /// The same with a tenth of the room.
    fn narrow(&self) -> (Part, Writer<DynamicObject>) {
        let (mut part, writer) = self.part();
        let rules = Lanes::new(COSTLY, COSTLY_OF_ONE, SLOW_RULES);
        part.targets = Targets::new(Shared::within(rules, OF_OBJECTS, OF_STATUSES));
        (part, writer)
    }
}

// === impl State ===

impl State {
    fn answer(&mut self, method: &Method, path: &str, said: &Value) -> (u16, Value) {
        let of_member = path.split_once("/proxy").map(|(_, path)| path);
        match of_member {
            None if path.ends_with("/status") => self.status(said),
            None => (200, json!({"metadata": {"name": "w", "namespace": "c1", "resourceVersion": "8"}})),
            Some("/apis") => {
                let versions = json!([{"version": "v1"}]);
                (200, json!({"groups": [{"name": GROUP, "versions": versions}]}))
            }
            Some(path) if path.contains(APPLIED) => {
                let name = path.split_once(APPLIED).unwrap().1.trim_end_matches("/status");
                if let Some(listed) = said.pointer("/status/appliedResources").and_then(Value::as_array) {
                    self.listed.clone_from(listed);
                }
                let spec = json!({"hubHash": "h", "agentID": "ours-c1", "manifestWorkName": &name[2..]});
                let metadata =
                    json!({"name": name, "uid": "o", "resourceVersion": "7", "finalizers": [APPLIED_FINALIZER]});
                (200, json!({"metadata": metadata, "spec": spec, "status": {"appliedResources": self.listed}}))
            }
            Some(_) => {
                self.looks += usize::from(method == Method::GET);
                no(404, "not found")
            }
        }
    }

    fn status(&mut self, said: &Value) -> (u16, Value) {
        if self.is_broken {
            return no(500, "broken");
        }
        let bytes = said.to_string().len();
        if bytes > self.largest {
            self.refused.push(bytes);
            return no(413, "Request entity too large: limit is 3145728");
        }
        self.statuses.push(said["status"].clone());
        (200, json!({"metadata": {"name": "w", "namespace": "c1", "resourceVersion": "8"}}))
    }
}

/// A work of this many objects of a kind that the member does not have: none of them costs a
/// request.
fn crowd(number: usize, manifests: usize) -> DynamicObject {
    let one = |at: usize| json!({"apiVersion": "x/v1", "kind": "Z", "metadata": {"name": format!("a{at}")}});
    let manifests: Vec<Value> = (0..manifests).map(one).collect();
    told(&json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManifestWork",
        "metadata": {"name": format!("w{number}"), "namespace": "c1", "uid": format!("u{number}"),
            "resourceVersion": "7", "generation": 1, "finalizers": [work::FINALIZER]},
        "spec": {"workload": {"manifests": manifests}}}))
}

/// The last written `Applied`.
fn applied(planes: &Planes) -> condition::Condition {
    let state = planes.0.lock();
    let conditions = state.statuses.last().unwrap()["conditions"].clone();
    let conditions: Vec<condition::Condition> = serde_json::from_value(conditions).unwrap();
    condition::find(&conditions, kind::APPLIED).unwrap().clone()
}

async fn reconcile(part: &Part, writer: &mut Writer<DynamicObject>, work: &DynamicObject) -> Action {
    writer.apply_watcher_event(&Event::Apply(work.clone()));
    part.reconcile(work).await
}

/// The state of a work.
fn memory(part: &Part, number: usize) -> tokio::sync::OwnedMutexGuard<Memory> {
    part.memories.of(&("c1".to_owned(), format!("w{number}"))).try_lock_owned().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_work_of_too_many_manifests_is_refused_and_says_so() {
    let planes = planes();
    let (part, mut writer) = planes.part();
    let action = reconcile(&part, &mut writer, &crowd(0, MOST_MANIFESTS + 1)).await;
    assert_eq!(action, Action::await_change());
    let told = applied(&planes);
    assert_eq!((told.status, told.reason.as_str()), (condition::Status::False, "AppliedManifestWorkFailed"));
    assert!(told.message.contains("it has 1501 manifests, and at most 1500 are applied: split it"), "{}", told.message);
    assert_eq!(memory(&part, 0).objects.len(), 0);
    // With one object less, each is reported.
    reconcile(&part, &mut writer, &crowd(1, MOST_MANIFESTS)).await;
    let manifests = planes.0.lock().statuses.last().unwrap()["resourceStatus"]["manifests"].clone();
    assert_eq!(manifests.as_array().unwrap().len(), MOST_MANIFESTS);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_too_large_for_the_hub_is_neither_kept_nor_tried_again() {
    let planes = planes();
    planes.0.lock().largest = 10_000;
    let (part, mut writer) = planes.part();
    let work = crowd(0, MANIFESTS);
    reconcile(&part, &mut writer, &work).await;
    let told = applied(&planes);
    let why = "the status of its 150 manifests is larger than the hub takes, and left out: split the work";
    assert!(told.message.ends_with(why), "{}", told.message);
    assert!(memory(&part, 0).status.is_none());
    for _ in 0..10 {
        tokio::time::advance(Duration::from_mins(5)).await;
        reconcile(&part, &mut writer, &work).await;
    }
    let state = planes.0.lock();
    assert_eq!((state.refused.len(), state.statuses.len()), (1, 1), "{:?}", state.refused);
}

#[tokio::test(start_paused = true)]
async fn statuses_that_cannot_be_written_take_no_more_than_there_is_room_for() {
    let planes = planes();
    planes.0.lock().is_broken = true;
    let (part, mut writer) = planes.narrow();
    for number in 0..WORKS {
        reconcile(&part, &mut writer, &crowd(number, MANIFESTS)).await;
    }
    let sizes = (0..WORKS).map(|number| memory(&part, number).status.as_ref().map_or(0, weighs));
    let sum: usize = sizes.sum();
    assert!((1..=OF_STATUSES.of_one).contains(&sum), "{sum}");
    // Each is written once the hub accepts it.
    planes.0.lock().is_broken = false;
    tokio::time::advance(Duration::from_mins(10)).await;
    for number in 0..WORKS {
        part.reconcile(&crowd(number, MANIFESTS)).await;
    }
    assert_eq!(planes.0.lock().statuses.len(), WORKS);
}

#[tokio::test(start_paused = true)]
async fn objects_beyond_the_room_are_not_watched_but_looked_at_from_time_to_time() {
    let planes = planes();
    let (part, mut writer) = planes.narrow();
    let mut last = Action::await_change();
    for number in 0..WORKS {
        last = reconcile(&part, &mut writer, &crowd(number, MANIFESTS)).await;
    }
    let count = |number| memory(&part, number).objects.len();
    let remembered = (0..WORKS).map(count).sum::<usize>();
    let room = OF_OBJECTS.of_one / OBJECT;
    assert!((room / 2..=room).contains(&remembered), "{remembered}");
    let unwatched = part.metrics.delivery.unwatched_works();
    assert!(unwatched > 0 && !part.target("c1").unwrap().mark_unwatched(), "{unwatched}, and it was told");
    assert_eq!(count(WORKS - 1), 0);
    assert_ne!(last, Action::await_change(), "it is looked at again");
    // Room that others release goes to works that had none.
    for number in 0..WORKS / 2 {
        writer.apply_watcher_event(&Event::Delete(crowd(number, 0)));
        part.leave(&("c1".to_owned(), format!("w{number}")));
    }
    let left = part.metrics.delivery.unwatched_works();
    assert_eq!(left, i64::try_from(WORKS / 2).unwrap());
    tokio::time::advance(Duration::from_mins(20)).await;
    part.reconcile(&crowd(WORKS - 1, MANIFESTS)).await;
    assert_eq!((count(WORKS - 1), part.metrics.delivery.unwatched_works()), (MANIFESTS, left - 1));
}

/// Somewhat more than one pass looks at.
#[tokio::test(start_paused = true)]
async fn of_what_a_member_lists_so_many_are_looked_at_in_one_pass() {
    let planes = planes();
    let listed = MOST_AT_ONCE + 500;
    let one = |at: usize| json!({"version": "v1", "resource": "things", "name": format!("a{at:05}"), "uid": "u"});
    planes.0.lock().listed = (0..listed).map(one).collect();
    let (part, mut writer) = planes.part();
    let work = crowd(0, 1);
    reconcile(&part, &mut writer, &work).await;
    let looks = std::mem::take(&mut planes.0.lock().looks);
    assert!((MOST_AT_ONCE..MOST_AT_ONCE + 10).contains(&looks), "{looks}");
    let told = applied(&planes);
    let why = "AppliedManifestWork h-w0 lists 500 more objects to delete: the next passes delete them";
    assert!(told.message.contains(why), "{}", told.message);
    assert_eq!(planes.0.lock().listed.len(), 500);
    // And then the others.
    for _ in 0..3 {
        tokio::time::advance(Duration::from_mins(5)).await;
        part.reconcile(&work).await;
    }
    assert_eq!(planes.0.lock().listed.len(), 0);
    assert!(!applied(&planes).message.contains("more objects"));
}
