//! With a hub in memory that is also its member.

mod complete;
mod edited;
mod hostile;
mod hub;
mod order;

use kube::runtime::watcher::Event;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::time::timeout;

use self::hub::Hub;
use super::*;
use crate::args::{Config, parse_from};
use crate::feed::crd::Presence;
use crate::term::Term;

const A_WHILE: Duration = Duration::from_secs(1);

fn metrics() -> Metrics {
    Metrics::register(&mut Registry::default(), Arc::default())
}

/// An object as its watch brings it.
fn told(object: &serde_json::Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

/// A part that has begun, for cluster `c1`, and the writer of its watch.
fn part(hub: &Hub) -> (Part, Writer<DynamicObject>) {
    let (writer, metrics) = (Writer::new(works()), metrics());
    let part = Part {
        hub: LeaderClient { client: hub.client(), may_write: Arc::new(|| Duration::MAX) },
        writes: Semaphore::new(WRITES),
        members: Fleet::new(hub.client()),
        agent: Agent { hub_hash: "h".into(), id: "ours".into() },
        clusters: Clusters::default(),
        definition: watch::channel(Presence::There).1,
        targets: Targets::new(Shared::new(Lanes::new(COSTLY, COSTLY_OF_ONE, SLOW_RULES))),
        memories: Memories::default(),
        store: writer.as_reader(),
        shelf: Shelf::new(shelf::LIMITS, metrics.delivery.clone()),
        wakes: Wakes::default(),
        answered: Wakes::default(),
        limits: Limits { lanes: Lanes::new(4, 4, SLOW_ANSWER), within: A_WHILE },
        resync: Duration::from_mins(10),
        is_executor_required: false,
        needs_rules: false,
        raw_feedback: None,
        events: Events::start(hub.client(), metrics.events_left_out.clone(), Term::endless()),
        metrics,
    };
    part.clusters.listed(["c1".to_owned()].into());
    part.clusters.put("c1", Some(Mode::Push));
    (part, writer)
}

/// Processes a work, as its watch brings it, until nothing more is due soon.
async fn go_over(part: &Part, writer: &mut Writer<DynamicObject>, hub: &Hub) {
    for _ in 0..4 {
        once(part, writer, hub).await;
        tokio::time::advance(Duration::from_secs(11)).await;
    }
}

async fn once(part: &Part, writer: &mut Writer<DynamicObject>, hub: &Hub) -> Action {
    let object = told(&hub.told());
    writer.apply_watcher_event(&Event::Apply(object.clone()));
    part.reconcile(&object).await
}

/// Makes all objects due again.
async fn look_again(part: &Part) {
    part.memories.of(&("c1".to_owned(), "w".to_owned())).lock().await.settled = None;
}

/// A condition of a work or of a manifest, as status and reason.
fn said(of: &serde_json::Value, kind: &str) -> String {
    let all = of["conditions"].as_array().into_iter().flatten();
    let found = all.filter(|one| one["type"] == kind).map(|one| {
        format!("{}/{}", one["status"].as_str().unwrap_or_default(), one["reason"].as_str().unwrap_or_default())
    });
    found.collect()
}

/// The member's writes of a replica that waits, and then leads after `meanwhile`.
async fn taken_over(hub: &Hub, meanwhile: impl FnOnce()) -> Vec<String> {
    let config = Config::new(&parse_from(["x", "--enable=manifestworks"]).unwrap()).unwrap();
    let ((begin, term), metrics) = (Term::ahead(), metrics());
    let mut running = Box::pin(run(Context {
        config: &config,
        hub: hub.client(),
        members: Fleet::new(hub.client()),
        events: Events::start(hub.client(), metrics.events_left_out.clone(), term.clone()),
        metrics,
        readiness: telemetry::readiness::Readiness::default(),
        explained: crate::explained::Explained::default(),
        answered: Wakes::default(),
        withdrawn: Wakes::default(),
        term,
    }));
    assert!(timeout(A_WHILE, &mut running).await.is_err());
    assert_eq!(hub.writes(), [""; 0], "it does not lead");
    meanwhile();
    begin.now(Arc::new(|| Duration::MAX));
    assert!(timeout(Duration::from_secs(20), &mut running).await.is_err());
    hub.writes().into_iter().filter(|one| one.contains("/proxy/")).collect()
}

#[tokio::test(start_paused = true)]
async fn what_ended_while_a_watch_was_dead_does_not_come_back() {
    let hub = Hub::default();
    assert_eq!(taken_over(&hub, || hub.end_work()).await, [""; 0]);
    // A work that still exists is processed all the same.
    let hub = Hub::default();
    let writes = taken_over(&hub, || ()).await;
    assert!(writes.iter().any(|one| one.starts_with("POST") && one.contains("/appliedmanifestworks")), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_work_whose_objects_change_on_and_on_is_not_read_each_time() {
    let hub = Hub::default();
    let (part, mut writer) = part(&hub);
    let object = told(&hub::work());
    let memory = part.memories.of(&work::key(&object));
    let mut settled = memory.lock().await;
    settled.recall(&mut Work::read(&object));
    settled.settled = Some(1);
    // For a long time already.
    (0..20).for_each(|_| settled.heat.passed(Instant::now(), 1));
    drop(settled);
    // Reading the work reports that it is invalid.
    let mut unreadable = hub::work();
    unreadable["spec"] = json!({"workload": 3});
    let unreadable = told(&unreadable);
    writer.apply_watcher_event(&Event::Apply(unreadable.clone()));
    for _ in 0..100 {
        part.reconcile(&unreadable).await;
        tokio::time::advance(A_WHILE / 100).await;
    }
    assert_eq!(hub.writes(), [""; 0]);
    tokio::time::advance(Duration::from_secs(10)).await;
    part.reconcile(&unreadable).await;
    assert_eq!(hub.writes().len(), 1, "when it has rested");
}

#[tokio::test(start_paused = true)]
async fn a_work_is_judged_as_it_is_when_its_turn_comes() {
    let hub = Hub::default();
    let (part, mut writer) = part(&hub);
    let old = told(&hub::work());
    let mut new = hub::work();
    new["metadata"]["uid"] = "another".into();
    writer.apply_watcher_event(&Event::Apply(told(&new)));
    assert_eq!(part.reconcile(&old).await, Action::requeue(Duration::ZERO), "there is another one");
    writer.apply_watcher_event(&Event::Delete(told(&new)));
    part.reconcile(&old).await;
    assert!(part.memories.of_cluster("c1").is_empty(), "there is none");
    // A work that is being deleted does not wait for its cluster with the others: it reports why it
    // does not end.
    let mut ending = hub::work();
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    writer.apply_watcher_event(&Event::Apply(told(&ending)));
    part.target("c1").unwrap().failed(Duration::from_secs(9), "down");
    part.reconcile(&old).await;
    assert_eq!(hub.writes().len(), 1, "{:?}", hub.writes());
}

/// Any request that the member answers first shortens the rest of its works.
#[tokio::test(start_paused = true)]
async fn works_of_a_member_that_answers_somebody_rest_no_longer() {
    let hub = Hub::default();
    let (part, mut writer) = part(&hub);
    writer.apply_watcher_event(&Event::Apply(told(&hub::work())));
    let target = part.target("c1").unwrap();
    for _ in 0..9 {
        let (after, _) = target.failed(Duration::ZERO, "down");
        tokio::time::advance(after).await;
    }
    target.failed(Duration::ZERO, "down");
    assert!(target.rest() > Some(Duration::from_secs(20)));
    part.answered.push("", "c1");
    part.answered.push("", "another");
    assert!(timeout(A_WHILE, watches::answers(&part)).await.is_err(), "it never ends");
    assert_eq!((target.rest(), part.wakes.next().await), (None, ("c1".to_owned(), "w".to_owned())));
    assert_eq!(part.wakes.waiting(), 0);
}

/// Its watch has brought it, but there is no room for it.
fn beyond(part: &mut Part, writer: &mut Writer<DynamicObject>, work: &serde_json::Value) -> Arc<DynamicObject> {
    part.shelf = Shelf::new(shelf::MemoryLimits { in_all: 0, of_one: 0 }, part.metrics.delivery.clone());
    let event = part.shelf.keep(Event::Apply(told(work)), &part.store);
    writer.apply_watcher_event(&event);
    assert_eq!(part.metrics.delivery.unkept(), 1);
    part.known(&("c1".to_owned(), "w".to_owned())).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_work_that_is_not_kept_is_read_at_its_turn() {
    let hub = Hub::default();
    let (mut part, mut writer) = part(&hub);
    let kept = beyond(&mut part, &mut writer, &hub::work());
    part.reconcile(&kept).await;
    // Its objects are applied as if it were kept.
    let writes = hub.writes();
    let is_applied = writes.iter().any(|one| one.starts_with("POST") && one.contains("/appliedmanifestworks"));
    assert!(is_applied, "{writes:?}");
    assert!(!part.target("c1").unwrap().mark_beyond(), "and that was told");
}

/// Otherwise an author of many heavy works would have all of them read, and none of others
/// meanwhile.
#[tokio::test(start_paused = true)]
async fn a_heavy_work_that_is_not_kept_is_not_read_before_there_is_room() {
    let hub = Hub::default();
    let (mut part, mut writer) = part(&hub);
    let mut heavy = hub::work();
    heavy["spec"]["workload"]["manifests"] = vec![json!({"a": 1}); 100_000].into();
    let kept = beyond(&mut part, &mut writer, &heavy);
    let others = part.target("c1").unwrap().room(shelf::weighs(&kept)).unwrap();
    assert!(!others.is_empty(), "it is heavy");
    assert_eq!(part.reconcile(&kept).await, Action::requeue(SLOT_AGAIN));
    assert_eq!(hub.reads(), 0);
    drop(others);
    part.reconcile(&kept).await;
    assert_eq!(hub.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_with_a_work_that_is_not_kept_and_cannot_be_read() {
    let hub = Hub::default();
    let (mut part, mut writer) = part(&hub);
    let kept = beyond(&mut part, &mut writer, &hub::work());
    hub.tells_work(false);
    for _ in 0..3 {
        assert_ne!(part.reconcile(&kept).await, Action::await_change(), "it is tried again");
    }
    assert_eq!(hub.writes(), [""; 0]);
    hub.tells_work(true);
    part.reconcile(&kept).await;
    assert_ne!(hub.writes(), [""; 0], "it is on the hub");
}

#[tokio::test(start_paused = true)]
async fn what_the_hub_lists_beyond_the_room_is_not_kept() {
    let hub = Hub::default();
    let (mut part, mut writer) = part(&hub);
    part.shelf = Shelf::new(shelf::MemoryLimits { in_all: 0, of_one: 0 }, part.metrics.delivery.clone());
    assert!(timeout(A_WHILE, watches::works(&part, &mut writer)).await.is_err());
    let listed = part.store.state();
    assert!(matches!(&listed[..], [one] if !shelf::is_whole(one)), "{listed:?}");
    assert_eq!(part.metrics.delivery.unkept(), 1);
}
