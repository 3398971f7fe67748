//! A cluster that one Placement of a set hands over to another.

use super::super::leaving::HANDOVER;
use super::*;

/// A work of `c1` whose `Applied` got this status at [`now`].
fn told(name: &str, placement: &str, applied: &str) -> Value {
    let mut work = on_hub("c1", name, placement, "1", 1);
    work["status"]["conditions"] = json!([{"type": "Applied", "status": applied, "observedGeneration": 1,
        "lastTransitionTime": "2026-03-01T12:00:00Z"}]);
    work
}

/// A set that names only `b`, which chooses `c1`; earlier it had a work for `a`.
fn handed_over(others: &[Value]) -> World {
    let mut world = world(&all("b"), &[told("old", "a", "True")]);
    for other in others {
        world.put(Of::Work, other.clone(), now());
    }
    place(&mut world, "b", 1, &["c1"]);
    world
}

#[test]
fn a_work_stays_until_another_of_its_set_has_its_objects() {
    let plan = planned(&handed_over(&[]));
    assert_eq!((created(&plan), removed(&plan), plan.again), (vec!["c1"], vec![], None), "the other one is first");
    let plan = planned(&handed_over(&[on_hub("c1", "new", "b", "1", 2)]));
    assert!(plan.surplus.is_empty() && !plan.is_held, "nobody has applied it: {plan:?}");
    assert_eq!(removed(&planned(&handed_over(&[told("new", "b", "True")]))), [("c1", "old")]);
    let mut behind = told("new", "b", "True");
    behind["metadata"]["generation"] = json!(2);
    assert!(planned(&handed_over(&[behind])).surplus.is_empty(), "it is applied at another generation");
    let mut ending = told("new", "b", "True");
    ending["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z");
    assert!(planned(&handed_over(&[ending])).surplus.is_empty(), "it takes the objects along");
}

/// Clusters come one by one, and their works go one by one.
#[test]
fn a_handover_is_told_once() {
    let from_a = || ("a".to_owned(), "b".to_owned());
    let mut world = handed_over(&[told("else", "a", "True")]);
    let tell = |world: &mut World| {
        let plan = planned(world);
        let told = world.tell_handovers(&key(), plan.handovers.keys().cloned().collect());
        (plan.handovers.into_values().flatten().collect::<Vec<_>>(), told)
    };
    let c1 = || vec!["c1".to_owned()];
    assert_eq!(tell(&mut world), (c1(), vec![from_a()]));
    world.put(Of::Work, told("new", "b", "True"), now());
    assert_eq!(tell(&mut world), (c1(), vec![]), "they go now");
    let mut ending = told("old", "a", "True");
    ending["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z");
    ending["metadata"]["resourceVersion"] = "2".into();
    world.put(Of::Work, ending, now());
    let mut again = set("1", &all("b"));
    again["metadata"]["resourceVersion"] = "2".into();
    world.put(Of::Set, again, now());
    assert_eq!(tell(&mut world), (c1(), vec![]), "one is on its way");
    for name in ["old", "else"] {
        world.remove(Of::Work, &("c1".to_owned(), name.to_owned()), None, now());
    }
    assert_eq!(tell(&mut world), (vec![], vec![]));
    world.put(Of::Work, told("old", "a", "True"), now());
    assert_eq!(tell(&mut world), (c1(), vec![from_a()]), "another time");
    assert!(planned(&handed_over(&[])).handovers.len() == 1 && planned(&never_applied()).handovers.is_empty());
}

#[test]
fn one_that_cannot_be_applied_is_not_waited_for_without_end() {
    let world = handed_over(&[told("new", "b", "False")]);
    let end = now() + HANDOVER;
    let plan = planned_at(&world, end - time::Duration::SECOND);
    assert_eq!((removed(&plan), plan.again), (vec![], Some(end)));
    assert_eq!(removed(&planned_at(&world, end)), [("c1", "old")]);
}

/// Agents write the time; no time that they may write ends the program.
#[test]
fn a_time_at_the_end_of_all_times_is_only_far() {
    let mut far = told("new", "b", "False");
    far["status"]["conditions"][0]["lastTransitionTime"] = json!("9999-12-31T23:59:59Z");
    assert!(planned(&handed_over(&[far])).surplus.is_empty());
}

fn never_applied() -> World {
    let mut world = world(&all("b"), &[on_hub("c1", "old", "a", "1", 1)]);
    place(&mut world, "b", 1, &["c1"]);
    world
}

#[test]
fn what_was_never_applied_waits_for_nobody() {
    assert_eq!(removed(&planned(&never_applied())), [("c1", "old")]);
}

#[test]
fn a_cluster_that_no_placement_chooses_loses_its_work_at_once() {
    let mut world = world(&all("b"), &[told("old", "a", "True")]);
    place(&mut world, "b", 1, &["c2"]);
    assert_eq!(removed(&planned(&world)), [("c1", "old")]);
}

#[test]
fn works_of_a_placement_that_is_named_no_more_stay_until_the_others_have_chosen() {
    let mut world = world(&all("b"), &[told("old", "a", "True")]);
    let plan = planned(&world);
    assert!(plan.surplus.is_empty() && plan.is_missing, "b may choose the same cluster");
    place(&mut world, "b", 1, &[]);
    let plan = planned(&world);
    assert!(plan.surplus.is_empty() && plan.is_held, "its decisions are not there yet");
    let odd = json!([{"name": "b", "rolloutStrategy": {"type": "Odd"}}]);
    let mut odd = super::world(&odd, &[told("old", "a", "True")]);
    place(&mut odd, "b", 1, &["c2"]);
    assert!(planned(&odd).surplus.is_empty(), "its strategy cannot be read");
}

/// Also between two Placements that the set both names.
#[test]
fn a_cluster_moves_between_two_placements_of_a_set() {
    let both = json!([{"name": "a", "rolloutStrategy": {"type": "All"}},
        {"name": "b", "rolloutStrategy": {"type": "All"}}]);
    let mut world = world(&both, &[told("old", "a", "True")]);
    place(&mut world, "a", 0, &[]);
    place(&mut world, "b", 1, &["c1"]);
    let plan = planned(&world);
    assert_eq!((created(&plan), removed(&plan)), (vec!["c1"], vec![]));
    world.put(Of::Work, told("new", "b", "True"), now());
    assert_eq!(removed(&planned(&world)), [("c1", "old")]);
}
