mod executors;
mod raced;
mod turned_away;
mod unlisted;

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use delivery::executor::Executor;
use delivery::identity::{Identity, Tracked};
use delivery::ownership::Owner;
use kube::Client;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::*;
use crate::metrics::Delivery;
use crate::parts::manifestworks::applied::{Agent, Keeper, Undone};
use crate::parts::manifestworks::begun::{Begun, Removed};
use crate::parts::manifestworks::clusters::Mode;
use crate::parts::manifestworks::discovery::KindLookups;
use crate::parts::manifestworks::failure::Failure;
use crate::parts::manifestworks::member::{At, Limits, MemberError};
use crate::parts::manifestworks::removal::Leaving;
use crate::parts::manifestworks::rest::LONGEST;
use crate::parts::manifestworks::work::Work;
use crate::scripted;

const WITHIN: Duration = Duration::from_secs(5);
const SLOW: Duration = Duration::from_secs(1);

/// A member that answers by path; any other path is of a group that it does not have.
fn target(answers: &'static [(&'static str, u16, &'static str)]) -> Arc<Target> {
    sluggish(answers, Duration::ZERO)
}

/// The same, but each answer takes a while.
fn sluggish(answers: &'static [(&'static str, u16, &'static str)], takes: Duration) -> Arc<Target> {
    let client = scripted::answering(move |request| async move {
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let found = answers.iter().find(|(path, ..)| *path == request.uri().path());
        let (code, body) = found.map_or((404, "404 page not found"), |(_, code, body)| (*code, *body));
        scripted::text(code, body)
    });
    Arc::new(Target::new(member(client), &shared()))
}

fn member(client: Client) -> Member {
    named(&ClusterName::parse("c1").unwrap(), client)
}

fn named(name: &ClusterName, client: Client) -> Member {
    let limits = Limits { lanes: Lanes::new(4, 4, SLOW), within: WITHIN };
    let metrics = Delivery::register(&mut Registry::default());
    Member::new(name, client.into(), &limits, Arc::new(|| WITHIN), metrics)
}

fn shared() -> Shared {
    Shared::new(Lanes::new(2, 1, SLOW))
}

const VERSION: (&str, u16, &str) = ("/version", 200, "{}");
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/appliedmanifestworks.work.open-cluster-management.io";
const MISSING: &str = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
    "reason": "NotFound", "message": "not found", "details": {"name": "x", "kind": "y"}}"#;

#[tokio::test]
async fn a_broken_server_of_one_group_is_not_the_member() {
    let broken = target(&[VERSION, ("/apis/broken.io/v1", 503, "service unavailable")]);
    let answer = broken.member.read("/apis/broken.io/v1").await;
    assert!(matches!(answer, Err(MemberError::Refused(_))), "{answer:?}");
    let away = target(&[("/version", 503, "down"), ("/apis/broken.io/v1", 503, "down")]);
    let answer = away.member.read("/apis/broken.io/v1").await;
    assert!(matches!(answer, Err(MemberError::Away(_))), "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_is_nothing_but_structure_is_not_read() {
    let heavy = format!("[{}]", vec![r#"{"":0}"#; 100_000].join(",")).leak();
    let target = target(vec![VERSION, ("/api/v1/heavy", 200, heavy)].leak());
    let answer = target.member.read("/api/v1/heavy").await;
    assert!(matches!(&answer, Err(MemberError::Refused(failure)) if failure.message.contains("24 MiB")), "{answer:?}");
}

#[tokio::test]
async fn that_nothing_is_listed_is_known_only_for_certain() {
    let none = target(&[VERSION, (DEFINITION, 404, MISSING)]);
    assert!(none.applied_for_certain("x").await.unwrap().is_none());
    let unserved = target(&[VERSION, (DEFINITION, 200, "{}")]);
    assert!(matches!(unserved.applied_for_certain("x").await, Err(Failure::Defined)));
    let unknown = target(&[VERSION, (DEFINITION, 500, "broken")]);
    assert!(unknown.applied_for_certain("x").await.is_err());
    let empty = target(&[VERSION, ("/apis", 200, r#"{"groups": []}"#)]);
    assert!(empty.kinds.serves(&empty.member, "g", "v1").await.is_err(), "no member has no group");
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_is_undone_at_once_was_not_carried_out() {
    const GROUPS: &str =
        r#"{"groups": [{"name": "work.open-cluster-management.io", "versions": [{"version": "v1"}]}]}"#;
    // With any content, it is the agent's.
    const THEIRS: &str = r#"{"metadata": {"name": "h-w", "uid": "u", "resourceVersion": "7"},
        "spec": {"hubHash": "h", "agentID": "klusterlet", "manifestWorkName": "w"}}"#;
    let path = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks/h-w";
    let target = target(vec![VERSION, ("/apis", 200, GROUPS), (path, 200, THEIRS)].leak());
    let agent = Agent { hub_hash: "h".into(), id: "ours".into() };
    let object = json!({"apiVersion": "v1", "kind": "x", "metadata": {"name": "w", "namespace": "c1"}});
    let work = Work::read(&serde_json::from_value(object).unwrap());
    let (keeper, mut writes) = (Keeper { agent: &agent, work: &work }, Undone::default());
    for _ in 0..2 {
        let written = target.ensure_applied("h-w", keeper, Mode::UNHEARD, &mut writes).await.unwrap();
        assert!(!written.is_adopted(&keeper.spec()));
    }
    let waits = target.ensure_applied("h-w", keeper, Mode::UNHEARD, &mut writes).await;
    assert!(matches!(waits, Err(Failure::Contested { .. })), "{waits:?}");
    tokio::time::advance(WITHIN).await;
    assert!(target.ensure_applied("h-w", keeper, Mode::UNHEARD, &mut writes).await.is_ok(), "it is tried again");
}

#[tokio::test]
async fn nothing_is_written_to_a_cluster_that_is_left() {
    let target = target(&[VERSION, ("/api/v1/namespaces/n/configmaps", 201, "{}")]);
    let identity = Identity { resource: "configmaps".into(), namespace: "n".into(), ..Identity::default() };
    let at = At { identity: &identity, version: "v1" };
    target.member.create(at, &json!({})).await.unwrap();
    target.member.close();
    let answer = target.member.create(at, &json!({})).await;
    assert!(matches!(answer, Err(MemberError::NotLeading(_))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn those_that_fail_at_once_count_once_and_who_calls_often_is_not_heard_often() {
    let target = target(&[]);
    let (first, is_news) = target.failed(Duration::ZERO, "down");
    assert!(is_news);
    for _ in 0..3 {
        assert_eq!(target.failed(Duration::ZERO, "down"), (first, false));
    }
    assert_eq!(target.away.lock().failures, 1);
    assert!(target.try_now() && target.rest().is_none());
    target.failed(Duration::ZERO, "down");
    assert!(!target.try_now() && target.rest().is_some());
    tokio::time::advance(BETWEEN_TRIES).await;
    assert!(target.try_now());
}

#[tokio::test(start_paused = true)]
async fn who_answers_others_is_tried_soon_and_not_each_time() {
    let target = target(&[]);
    assert!(!target.answered_another(), "it does not rest");
    for _ in 0..9 {
        let (after, _) = target.failed(Duration::ZERO, "down");
        tokio::time::advance(after).await;
    }
    target.failed(Duration::ZERO, "down");
    assert!(target.answered_another() && target.rest().is_none());
    // In vain; and others are answered meanwhile.
    target.failed(Duration::ZERO, "down");
    assert!(target.answered_another() && target.rest() == Some(BETWEEN_ANSWERS));
    assert!(!target.answered_another(), "it is tried as soon already");
    target.failed(Duration::from_secs(40), "too many requests");
    assert!(!target.answered_another() && target.rest() > Some(Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn one_that_asks_to_be_left_alone_is_whatever_is_said_of_it() {
    let (target, asked) = (target(&[]), Duration::from_secs(40));
    target.failed(Duration::ZERO, "down");
    assert_eq!(target.failed(asked, "too many requests").0, asked, "it rests already, for less");
    assert_eq!(target.failed(Duration::ZERO, "down").0, asked);
    assert!(!target.try_now() && target.rest() == Some(asked), "a label of the cluster is no answer of it");
    tokio::time::advance(asked).await;
    assert!(target.rest().is_none() && target.try_now());
    let year = Duration::from_hours(24 * 365);
    assert_eq!(target.failed(year, "too many requests").0, LONGEST);
    assert!(!target.answered() && target.rest() == Some(LONGEST), "that was under way");
    tokio::time::advance(LONGEST).await;
    assert!(target.answered() && target.rest().is_none(), "it answers");
}

#[tokio::test]
async fn what_waits_for_a_cluster_that_is_left_waits_no_longer() {
    let target = target(&[]);
    let metrics = target.member.metrics.clone();
    target.at_work.store(MOST, Ordering::Relaxed);
    assert!(target.slot("w").is_none());
    assert_eq!(metrics.waiting(), 1);
    drop(target);
    assert_eq!(metrics.waiting(), 0);
}

/// A target whose member never answers, and is known for that.
async fn hanging(shared: &Shared) -> Arc<Target> {
    let target = Arc::new(Target::new(member(scripted::client(|_, _| None)), shared));
    for _ in 0..2 {
        let answer = target.member.read("/version").await;
        assert!(matches!(answer, Err(MemberError::Late(_))), "{answer:?}");
    }
    target
}

#[tokio::test(start_paused = true)]
async fn works_of_clusters_that_hang_leave_turns_to_others() {
    let shared = shared();
    let mut slots = Vec::new();
    for _ in 0..SLOW_WORKS {
        let target = hanging(&shared).await;
        slots.push(target.slot("a").unwrap());
        assert!(target.slot("b").is_none(), "one of each");
    }
    assert!(hanging(&shared).await.slot("a").is_none(), "so many of all");
    slots.pop();
    assert!(hanging(&shared).await.slot("a").is_some());
}

#[tokio::test(start_paused = true)]
async fn of_the_works_of_a_cluster_that_becomes_slow_one_goes_on() {
    let quick = target(&[VERSION]);
    let slots: Vec<Slot> = ["a", "b"].into_iter().filter_map(|work| quick.slot(work)).collect();
    assert!(slots.iter().all(|slot| slot.step().is_ok()));
    for _ in 0..4 {
        let held = quick.rules.enter().await;
        tokio::time::advance(2 * SLOW).await;
        drop(held);
    }
    assert!(slots[0].step().is_ok() && slots[0].step().is_ok());
    assert!(matches!(slots[1].step().err(), Some(Failure::Slow)));
}

async fn removed(answers: &'static [(&'static str, u16, &'static str)]) -> Removed {
    removed_for(answers, Some(&Executor { namespace: "n".into(), name: "e".into() }), false).await
}

async fn removed_for(
    answers: &'static [(&'static str, u16, &'static str)],
    executor: Option<&Executor>,
    is_executor_required: bool,
) -> Removed {
    let (target, owner, tracked) = (target(answers), owner(), tracked("a"));
    let (option, metrics) = (None, &target.member.metrics);
    let leaving = Leaving { work: "w", owner: &owner, option, executor, is_executor_required, metrics };
    let may_delete = target.may_delete(&tracked, leaving).await.unwrap();
    let slot = target.slot("w").unwrap();
    target.remove(&tracked, leaving, may_delete, &slot.step().unwrap()).await.unwrap()
}

fn owner() -> Owner {
    Owner { api_version: "v1".into(), kind: "k".into(), name: "o".into(), uid: "o".into() }
}

fn tracked(name: &str) -> Tracked {
    let identity =
        Identity { group: "x.io".into(), resource: "things".into(), name: name.into(), ..Identity::default() };
    Tracked { identity, version: "v1beta1".into(), uid: "u".into() }
}

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const YES: (&str, u16, &str) = (REVIEWS, 201, r#"{"status": {"allowed": true}}"#);
const GROUPS: (&str, u16, &str) = ("/apis", 200, r#"{"groups": [{"name": "x.io", "versions": [{"version": "v1"}]}]}"#);
const OTHERS: (&str, u16, &str) = ("/apis", 200, r#"{"groups": [{"name": "y.io", "versions": [{"version": "v1"}]}]}"#);
const DEFINED: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x.io";
/// The object in another version, and the answer to its deletion.
const THING: (&str, u16, &str) = (
    "/apis/x.io/v1/things/a",
    200,
    r#"{"kind": "Thing", "metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences":
        [{"apiVersion": "v1", "kind": "k", "name": "o", "uid": "o"}]}}"#,
);

#[tokio::test]
async fn what_is_served_in_another_version_is_not_gone() {
    let answer = removed(&[VERSION, GROUPS, YES, THING]).await;
    assert!(matches!(&answer, Removed::Waits(Some(version)) if version == "7"), "{answer:?}");
    let answer = removed(&[VERSION, OTHERS, YES, (DEFINED, 200, "{}")]).await;
    assert!(matches!(&answer, Removed::Refused(why) if why.contains("its definition is there")), "{answer:?}");
    let answer = removed(&[VERSION, OTHERS, YES, (DEFINED, 403, FORBIDDEN)]).await;
    assert!(matches!(&answer, Removed::Refused(why) if why.contains("grant get")), "{answer:?}");
    let answer = removed(&[VERSION, OTHERS, YES, (DEFINED, 404, MISSING)]).await;
    assert!(matches!(answer, Removed::Gone), "{answer:?}");
}

#[tokio::test]
async fn what_the_executor_may_not_delete_stays() {
    let answer = removed(&[VERSION, GROUPS, THING, (REVIEWS, 201, r#"{"status": {"allowed": false}}"#)]).await;
    let told = "system:serviceaccount:n:e may not delete it";
    assert!(matches!(&answer, Removed::Refused(why) if why.contains(told)), "{answer:?}");
}

#[tokio::test]
async fn where_an_executor_is_required_nothing_is_deleted_for_a_work_whose_executor_was_taken_off() {
    let answer = removed_for(&[VERSION, GROUPS, THING], None, true).await;
    let told = "an executor is required here: name one in spec.executor";
    assert!(matches!(&answer, Removed::Refused(why) if why.contains(told)), "{answer:?}");
    let answer = removed_for(&[VERSION, GROUPS, THING], None, false).await;
    assert!(matches!(&answer, Removed::Waits(_)), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_and_the_next_goes_on_where_it_was() {
    let target = target(&[VERSION, GROUPS, YES, THING]);
    let (owner, all, metrics) = (owner(), [tracked("a"), tracked("b")], &target.member.metrics);
    let executor = Executor { namespace: "n".into(), name: "e".into() };
    let (option, executor, is_executor_required) = (None, Some(&executor), false);
    let leaving = Leaving { work: "w", owner: &owner, option, executor, is_executor_required, metrics };
    let slot = target.slot("w").unwrap();
    let mut begun = Begun::default();
    target.review_removals(&slot, &all, leaving, &mut begun).await.unwrap();
    tokio::time::advance(LONGEST_SLOT).await;
    let ended = target.remove_all(&slot, &all, leaving, &mut begun).await;
    assert!(matches!(ended, Err(Failure::SlotOver)) && begun.removed.len() == 0, "{ended:?}");
    drop(slot);
    let (slot, answers) = (target.slot("w").unwrap(), target.member.answers());
    target.review_removals(&slot, &all, leaving, &mut begun).await.unwrap();
    assert_eq!(target.member.answers(), answers, "nobody is asked again");
    target.remove_all(&slot, &all[..1], leaving, &mut begun).await.unwrap();
    let answers = target.member.answers();
    target.remove_all(&slot, &all[..1], leaving, &mut begun).await.unwrap();
    assert_eq!((target.member.answers(), begun.removed.len()), (answers, 1));
}

#[tokio::test(start_paused = true)]
async fn looking_kinds_up_is_of_the_turn_and_the_next_goes_on_there() {
    let names: Vec<String> = (0..40).map(|number| format!("g{number}")).collect();
    let groups: Vec<_> = names.iter().map(|name| json!({"name": name, "versions": [{"version": "v1"}]})).collect();
    let groups = json!({ "groups": groups }).to_string().leak();
    let target = sluggish(vec![VERSION, ("/apis", 200, groups)].leak(), 4 * SLOW);
    let wanted: HashSet<_> = names.into_iter().map(|name| (name, "v1".to_owned(), "Kind".to_owned())).collect();
    let mut found = KindLookups::default();
    let mut slots = 0;
    loop {
        slots += 1;
        assert!(slots < 40, "it has no end");
        let (slot, began) = (target.slot("w").unwrap(), Instant::now());
        let ended = target.kinds.find(&target.member, || slot.step(), wanted.clone(), &mut found).await;
        assert!(began.elapsed() < LONGEST_SLOT + 20 * SLOW, "{:?}", began.elapsed());
        match ended {
            Ok(()) => break,
            Err(Failure::SlotOver) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(slots > 1, "it was too quick to tell");
}

#[tokio::test(start_paused = true)]
async fn looking_for_one_object_ends_with_the_turn_unless_it_is_the_first() {
    const MANY: &str = r#"{"groups": [{"name": "x.io", "versions": [{"version": "v1"}, {"version": "v2"}, {"version": "v3"},
        {"version": "v4"}, {"version": "v5"}, {"version": "v6"}, {"version": "v7"}, {"version": "v8"}, {"version": "v9"}]}]}"#;
    let target = sluggish(&[VERSION, ("/apis", 200, MANY), (DEFINED, 404, MISSING)], 4 * SLOW);
    let (owner, metrics) = (owner(), &target.member.metrics);
    let leaving =
        Leaving { work: "w", owner: &owner, option: None, executor: None, is_executor_required: false, metrics };
    let slot = target.slot("w").unwrap();
    let [first, second] = [slot.step().unwrap(), slot.step().unwrap()];
    let (one, other) = (tracked("a"), tracked("b"));
    let [first, second] =
        [(&one, &first), (&other, &second)].map(|(one, step)| target.remove(one, leaving, Ok(()), step));
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(first, Ok(Removed::Gone)), "{first:?}");
    assert!(matches!(second, Err(Failure::SlotOver)), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_cluster_that_waits_is_called_when_another_ends_its_turn() {
    let targets = Targets::new(shared());
    let (mut slots, mut slow) = (Vec::new(), Vec::new());
    for number in 0..=SLOW_WORKS {
        let name = ClusterName::parse(&format!("c{number}")).unwrap();
        let target = targets.of(&name, || named(&name, scripted::client(|_, _| None)));
        for _ in 0..2 {
            target.member.read("/version").await.unwrap_err();
        }
        slots.push(target.slot("a"));
        slow.push(target);
    }
    assert!(slots.pop().unwrap().is_none() && slots.iter().all(Option::is_some));
    assert!(targets.next_slow().is_empty());
    slots.pop();
    let called: Vec<_> =
        targets.next_slow().iter().map(|target| (target.member.cluster.to_string(), target.next())).collect();
    assert_eq!(called, [(format!("c{SLOW_WORKS}"), vec!["a".to_owned()])]);
    // It had its turn: the next time, clusters that wait by then come first.
    let (last, other) = (&slow[SLOW_WORKS], &slow[SLOW_WORKS - 1]);
    let slot = last.slot("a");
    assert!(slot.is_some() && other.slot("a").is_none());
    drop(slot);
    let taken = slow[SLOW_WORKS - 2].of_all.slow_line.lock().len();
    assert_eq!(taken, 1);
    // Another cluster takes the free place.
    let name = ClusterName::parse("another").unwrap();
    let another = targets.of(&name, || named(&name, scripted::client(|_, _| None)));
    for _ in 0..2 {
        another.member.read("/version").await.unwrap_err();
    }
    let _its = another.slot("a").unwrap();
    assert!(last.slot("a").is_none());
    slots.clear();
    let called: Vec<_> = targets.next_slow().iter().map(|target| target.member.cluster.to_string()).collect();
    assert_eq!(called, [format!("c{}", SLOW_WORKS - 1), format!("c{SLOW_WORKS}")]);
}

/// Meanwhile they do not take others' slots.
#[tokio::test]
async fn heavy_works_are_few_and_light_ones_as_many_as_there_are() {
    let targets = Targets::new(shared());
    let all: Vec<_> = (0..=HEAVY_WORKS)
        .map(|number| ClusterName::parse(&format!("c{number}")).unwrap())
        .map(|name| targets.of(&name, || named(&name, scripted::client(|_, _| None))))
        .collect();
    let mut held: Vec<_> = all.iter().map_while(|target| target.room(LIGHT + 1)).collect();
    assert_eq!(held.len(), HEAVY_WORKS);
    assert!(all.iter().all(|target| target.room(LIGHT).is_some()));
    held.pop();
    assert!(all[0].room(LIGHT + 1).is_none(), "one of a cluster at a time");
    assert!(all[HEAVY_WORKS].room(LIGHT + 1).is_some());
}

#[tokio::test]
async fn a_cluster_that_is_delivered_to_again_keeps_its_place() {
    let targets = Targets::new(shared());
    let name = ClusterName::parse("c1").unwrap();
    let target = targets.of(&name, || member(scripted::client(|_, _| None)));
    targets.forget("c1", || true);
    assert!(targets.known("c1").is_some_and(|known| Arc::ptr_eq(&known, &target)));
    targets.forget("c1", || false);
    assert!(targets.known("c1").is_none());
}

const FORBIDDEN: &str = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
    "reason": "Forbidden", "message": "no", "details": {"name": "x", "kind": "y"}}"#;
