use std::sync::Arc;

use http::Method;
use http::request::Parts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use register::ocm::delivery::DELIVERY_ANNOTATION;
use tokio::sync::Notify;

use super::*;
use crate::parts::hub_calls::managed_clusters as resource;
use crate::scripted;
use crate::term::Term;

/// Time between two probes of the clusters below.
const PERIOD: Duration = Duration::from_secs(10);
const ALL: [&str; 4] = ["a", "b", "c", "d"];
/// More clusters than permits.
const MANY: [&str; DOUBTFUL + 2] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Behaviour of the hub and its members.
#[derive(Default)]
struct World {
    /// Members from which the gateway gets no answer.
    away: Vec<&'static str>,
    /// Members whose answer never comes.
    hang: Vec<&'static str>,
    /// Time of the last renewal of each cluster's Lease; None: there are no Leases.
    renewed: Option<&'static str>,
    /// Number of coming writes that are refused, because the object is full.
    refuses: usize,
    /// Notes of Events.
    notes: Vec<String>,
    /// Notified of each.
    noted: Arc<Notify>,
    /// Path and body of each write.
    written: Vec<(String, Value)>,
    /// Paths of reads of Leases.
    leases: Vec<String>,
}

type Shared = Arc<Mutex<World>>;

/// A judge with a hub that accepts writes.
fn judge() -> (Judge, Shared) {
    let world = Shared::default();
    let theirs = Arc::clone(&world);
    let client = scripted::client(move |head, body| theirs.lock().answer(head, body));
    let judge = Judge {
        api: Api::all_with(client.clone(), &resource()),
        hub: LeaderClient { client: client.clone(), may_write: Arc::new(|| Duration::MAX) },
        members: Fleet::new(client.clone()),
        metrics: Metrics::register(&mut Registry::default(), Arc::default()),
        events: Events::start(client.clone(), Counter::default(), Term::endless()),
        is_beside_registration: false,
        agents: Agents::default(),
        states: ProbeStates::default(),
        doubtful: Semaphore::new(DOUBTFUL),
        tries: Tries::default(),
        answered: Wakes::default(),
    };
    (judge, world)
}

// === impl World ===

impl World {
    fn answer(&mut self, head: &Parts, body: Value) -> scripted::Answer {
        let (path, is_patch) = (head.uri.path(), head.method == Method::PATCH);
        if is_patch && self.refuses > 0 {
            self.refuses -= 1;
            return Some(scripted::status(500, "", "etcdserver: request is too large"));
        }
        if path.ends_with("/events") {
            self.notes.push(body["note"].as_str().unwrap_or_default().to_owned());
            self.noted.notify_one();
            return Some((201, body));
        }
        if is_patch {
            let written = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "c", "resourceVersion": "2", "annotations": {DELIVERY_ANNOTATION: "push"}},
                "status": body["status"]});
            self.written.push((path.to_owned(), body));
            return Some((200, written));
        }
        if path.ends_with("/leases/managed-cluster-lease") {
            self.leases.push(path.to_owned());
            let Some(renewed) = self.renewed else { return Some(scripted::status(404, "NotFound", "there is none")) };
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "managed-cluster-lease"}, "spec": {"renewTime": renewed}});
            return Some((200, lease));
        }
        let is_of = |names: &[&str]| names.iter().any(|name| path.contains(&format!("/clustergateways/{name}/proxy")));
        if is_of(&self.hang) {
            return None;
        }
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 502,
            "details": {"group": "cluster.core.oam.dev", "kind": "clustergateways",
                "causes": [{"reason": "Member", "message": "refused"}]}});
        Some(if is_of(&self.away) { (502, status) } else { (200, json!({})) })
    }
}

/// A cluster whose condition an agent wrote, or that has none, instead of one by answers.
fn said(name: &str, conditions: &Value) -> DynamicObject {
    let mut cluster = cluster(name);
    cluster.data["status"]["conditions"] = conditions.clone();
    cluster
}

fn agents(name: &str) -> DynamicObject {
    said(name, &json!([{"type": condition::AVAILABLE, "status": "True", "reason": "ManagedClusterAvailable"}]))
}

fn cluster(name: &str) -> DynamicObject {
    let mut cluster = DynamicObject::new(name, &resource()).data(json!({
        "spec": {"leaseDurationSeconds": 1, "hubAcceptsClient": true},
        "status": {"conditions": [{"type": condition::AVAILABLE, "status": "True", "reason": "MemberAnswers"}]}}));
    cluster.annotations_mut().insert(DELIVERY_ANNOTATION.to_owned(), "push".to_owned());
    cluster
}

/// Judges all clusters one period later, and then once more as after an event.
async fn look(judge: &Judge, names: &[&str]) {
    tokio::time::advance(PERIOD).await;
    for name in names.iter().chain(names) {
        judge.work(&cluster(name)).await.expect("it is looked at");
    }
}

fn paths(world: &Shared) -> Vec<String> {
    let world = world.lock();
    let parts = world.written.iter().filter_map(|(path, _)| path.rsplit_once("v1/"));
    parts.map(|(_, end)| end.to_owned()).collect()
}

/// This includes a silence that was too short to be reported: work that waited for the member is
/// tried again.
#[tokio::test(start_paused = true)]
async fn the_first_answer_after_none_is_passed_on() {
    let (judge, world) = judge();
    look(&judge, &ALL[..2]).await;
    assert_eq!(judge.answered.waiting(), 0, "they answered all the time");
    world.lock().away.push("a");
    look(&judge, &ALL[..2]).await;
    assert_eq!(judge.answered.waiting(), 0);
    world.lock().away.clear();
    look(&judge, &ALL[..2]).await;
    assert_eq!(judge.answered.waiting(), 1, "nobody is told");
    assert_eq!(judge.answered.next().await, (String::new(), "a".to_owned()));
    look(&judge, &ALL[..2]).await;
    assert_eq!(judge.answered.waiting(), 0, "once");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_lost_is_told_and_tainted() {
    let (judge, world) = judge();
    look(&judge, &ALL[..3]).await;
    world.lock().away.push("a");
    for _ in 0..2 {
        look(&judge, &ALL[..3]).await;
    }
    assert!(paths(&world).is_empty(), "its grace is two periods: {:?}", paths(&world));
    look(&judge, &ALL[..3]).await;
    assert_eq!(paths(&world), ["managedclusters/a/status", "managedclusters/a"]);
    let written = &world.lock().written;
    let told = &written[0].1["status"]["conditions"][0];
    assert_eq!((told["status"].as_str(), told["reason"].as_str()), (Some("Unknown"), Some("MemberUnreachable")));
    assert_eq!(written[1].1["spec"]["taints"][0]["key"], taints::UNREACHABLE);
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_could_not_be_written_is_written_without_another_probe() {
    let (judge, world) = judge();
    look(&judge, &ALL[..3]).await;
    world.lock().away.push("a");
    for _ in 0..2 {
        look(&judge, &ALL[..3]).await;
    }
    world.lock().refuses = 2;
    tokio::time::advance(PERIOD).await;
    for name in &ALL[1..3] {
        judge.work(&cluster(name)).await.expect("it is looked at");
    }
    let tries = 1..=2;
    for _ in tries {
        judge.work(&cluster("a")).await.expect_err("the hub refuses it");
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let noted = Arc::clone(&world.lock().noted);
    noted.notified().await;
    assert!(world.lock().notes[0].starts_with("cannot write whether it is available"), "{:?}", world.lock().notes);
    judge.work(&cluster("a")).await.expect("it is looked at");
    assert_eq!(paths(&world), ["managedclusters/a/status", "managedclusters/a"], "the back-off's time, no period");
    // It was reported: an older object must not cause the same report again.
    assert!(!judge.states.by_cluster.lock()["a"].is_unwritten);
}

#[tokio::test(start_paused = true)]
async fn after_a_gap_one_failure_is_no_loss() {
    let (judge, world) = judge();
    look(&judge, &ALL).await;
    // The last one, because others have answered by then.
    world.lock().away.push("d");
    tokio::time::advance(99 * PERIOD).await;
    look(&judge, &ALL).await;
    assert!(paths(&world).is_empty(), "{:?}", paths(&world));
}

#[tokio::test(start_paused = true)]
async fn of_most_of_a_fleet_nothing_is_told_and_when_it_returns_each_has_all_its_time() {
    let (judge, world) = judge();
    look(&judge, &ALL).await;
    world.lock().away.extend(["a", "b", "c"]);
    for _ in 0..9 {
        look(&judge, &ALL).await;
    }
    assert!(paths(&world).is_empty(), "{:?}", paths(&world));
    // The path works again, and the clusters held last are probed after the others.
    world.lock().away.retain(|name| *name == "c");
    for _ in 0..3 {
        assert!(paths(&world).is_empty(), "{:?}", paths(&world));
        look(&judge, &ALL).await;
    }
    assert_eq!(paths(&world).first().map(String::as_str), Some("managedclusters/c/status"));
}

/// One of three members answers sometimes, so it is never lost, and must not count as half of the
/// doubt.
#[tokio::test(start_paused = true)]
async fn who_answers_now_and_then_holds_nobody_elses_loss_up() {
    let (judge, world) = judge();
    look(&judge, &ALL[..3]).await;
    world.lock().away.push("b");
    look(&judge, &ALL[..3]).await;
    world.lock().away.push("a");
    for round in 0..6 {
        look(&judge, &ALL[..3]).await;
        let mut world = world.lock();
        world.away.retain(|name| *name != "b");
        world.away.extend((round % 2 == 1).then_some("b"));
    }
    assert_eq!(paths(&world)[..2], ["managedclusters/a/status", "managedclusters/a"]);
    assert!(paths(&world).iter().all(|path| path.contains("/a")), "{:?}", paths(&world));
}

/// A member that falls silent together with another, and stays silent, looks exactly like a broken
/// path.
#[tokio::test(start_paused = true)]
async fn who_falls_silent_with_another_holds_its_loss_for_half_an_hour() {
    let (judge, world) = judge();
    look(&judge, &ALL[..3]).await;
    let began = Instant::now();
    world.lock().away.extend(["a", "b"]);
    while paths(&world).is_empty() {
        assert!(began.elapsed() < Duration::from_hours(1), "it is held for ever");
        look(&judge, &ALL[..3]).await;
    }
    assert!(began.elapsed() >= Duration::from_mins(30), "{:?}", began.elapsed());
    assert_eq!(paths(&world).len(), 2, "one of them: {:?}", paths(&world));
    world.lock().away.push("c");
    for _ in 0..500 {
        look(&judge, &ALL[..3]).await;
    }
    assert!(paths(&world).iter().all(|path| !path.contains("/c")), "none answers: {:?}", paths(&world));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_held_counts_so_until_it_answers_and_keeps_its_taints() {
    let (judge, world) = judge();
    look(&judge, &ALL).await;
    world.lock().away.extend(["a", "b", "c"]);
    for _ in 0..3 {
        look(&judge, &ALL).await;
    }
    let mut by_hand = cluster("a");
    by_hand.data["spec"]["taints"] = json!([{"key": taints::UNREACHABLE, "effect": "NoSelect"}]);
    judge.work(&by_hand).await.expect("it is looked at");
    assert!(paths(&world).is_empty() && !judge.metrics.availability.put("a", Judged::Held), "it is held");
    world.lock().away.clear();
    tokio::time::advance(PERIOD).await;
    judge.work(&by_hand).await.expect("it is looked at");
    assert_eq!(paths(&world), ["managedclusters/a"], "it answers: no taint is right");
    assert!(!judge.metrics.availability.put("a", Judged::Available));
}

#[tokio::test(start_paused = true)]
async fn without_a_condition_of_ours_nothing_is_tainted() {
    let (judge, world) = judge();
    world.lock().away.push("a");
    let reason = condition::LEASE_UPDATE_STOPPED;
    let silent = json!([{"type": condition::AVAILABLE, "status": "Unknown", "reason": reason}]);
    for (conditions, counted) in [(json!([]), Judged::Unknown), (silent, Judged::Unreachable)] {
        judge.work(&said("a", &conditions)).await.expect("it is looked at");
        assert!(paths(&world).is_empty(), "{:?}", paths(&world));
        assert!(!judge.metrics.availability.put("a", counted), "it is counted as {counted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn beside_registration_the_condition_alone_is_written_and_no_lease_is_read() {
    let (mut judge, world) = judge();
    judge.is_beside_registration = true;
    judge.work(&agents("a")).await.expect("it is looked at");
    assert!(judge.states.by_cluster.lock().is_empty(), "an agent speaks");
    look(&judge, &ALL).await;
    world.lock().away.push("a");
    for _ in 0..3 {
        look(&judge, &ALL).await;
    }
    assert_eq!(paths(&world), ["managedclusters/a/status"], "its taints are for registration");
    assert!(world.lock().leases.is_empty(), "{:?}", world.lock().leases);
}

#[tokio::test(start_paused = true)]
async fn an_agents_word_stands_while_it_renews_its_lease_and_no_longer() {
    let (judge, world) = judge();
    let renewals = ["2026-11-01T00:00:00.000000Z", "2026-11-01T00:00:01.000000Z"];
    for renewed in renewals {
        world.lock().renewed = Some(renewed);
        tokio::time::advance(2 * PERIOD).await;
        judge.work(&agents("a")).await.expect("it is looked at");
    }
    assert!(judge.states.by_cluster.lock().is_empty() && paths(&world).is_empty(), "it renews");
    tokio::time::advance(PERIOD).await;
    judge.work(&agents("a")).await.expect("it is looked at");
    assert_eq!(world.lock().leases.len(), 2, "once in a grace");
    tokio::time::advance(PERIOD).await;
    judge.work(&agents("a")).await.expect("it is looked at");
    assert_eq!(paths(&world), ["managedclusters/a/status"], "it fell silent, and its member answers");
    assert_eq!(world.lock().written[0].1["status"]["conditions"][0]["reason"], "MemberAnswers");
}

#[tokio::test(start_paused = true)]
async fn where_the_agent_and_its_lease_are_gone_a_dead_member_is_lost() {
    let (judge, world) = judge();
    world.lock().away.push("a");
    for _ in 0..6 {
        judge.work(&agents("a")).await.expect("it is looked at");
        tokio::time::advance(PERIOD).await;
    }
    assert_eq!(world.lock().written[0].1["status"]["conditions"][0]["reason"], "MemberUnreachable");
}

#[tokio::test(start_paused = true)]
async fn those_that_are_away_take_turns() {
    let (judge, world) = judge();
    for name in MANY {
        world.lock().away.push(name);
        judge.work(&cluster(name)).await.expect("it is looked at");
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    tokio::time::advance(2 * PERIOD).await;
    let due = |name: &str| judge.states.by_cluster.lock()[name].next;
    let mut order = MANY;
    order.sort_by_key(|name| due(name));
    let last = order.last().expect("many");
    judge.work(&cluster(last)).await.expect("it waits");
    assert!(due(last) <= Instant::now(), "others have waited longer");
    for name in order {
        judge.work(&cluster(name)).await.expect("it is looked at");
        assert!(due(name) > Instant::now(), "it is its turn");
    }
}

#[tokio::test(start_paused = true)]
async fn those_that_let_it_wait_hold_a_place_for_a_second_and_then_leave_room_for_the_rest() {
    let (judge, world) = judge();
    world.lock().hang.extend(MANY);
    let judge = &judge;
    let looked_at = |name: &'static str| async move {
        let began = Instant::now();
        judge.work(&cluster(name)).await.expect("it is looked at");
        began.elapsed()
    };
    let first = futures_util::future::join_all(MANY.map(looked_at)).await;
    assert!(first.iter().all(|took| *took == SLOW), "{first:?}");
    let again = futures_util::future::join_all(MANY.map(looked_at)).await;
    let waited = again.iter().filter(|took| **took > SLOW).count();
    assert_eq!((waited, again.iter().filter(|took| took.is_zero()).count()), (DOUBTFUL, 2), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_period_counts_at_once() {
    let (judge, _) = judge();
    let mut cluster = cluster("a");
    cluster.data["spec"]["leaseDurationSeconds"] = 60.into();
    let asked = || judge.states.by_cluster.lock()["a"].asked;
    judge.work(&cluster).await.expect("it is looked at");
    let first = asked();
    tokio::time::advance(2 * PERIOD).await;
    judge.work(&cluster).await.expect("it is looked at");
    assert_eq!(asked(), first, "it is not due");
    cluster.data["spec"]["leaseDurationSeconds"] = 10.into();
    judge.work(&cluster).await.expect("it is looked at");
    assert!(asked() > first, "it is probed after the minute that the cluster had before");
}
