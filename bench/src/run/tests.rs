use std::rc::Rc;

use anyhow::Context as _;

use super::fake::{Act, Fake};
use super::*;
use crate::figure::{DIRECT, GO, NGINX, OURS, Target};
use crate::given::Programs;
use crate::size::Size;
use crate::tool::Absent;

const TIME: Duration = Duration::from_secs(5);

fn measured(scenario: impl Into<Scenario>, rounds: usize, smoke: bool) -> Outcome {
    let mut testbed = Testbed::new(Programs::default(), smoke, Size::SMOKE).unwrap();
    measure(scenario.into(), &mut testbed, Plan { rounds, time: TIME, smoke }, &mut Progress::silent())
}

#[test]
fn targets_take_turns_and_each_round_begins_with_the_next() {
    let fake = Fake::new([(DIRECT, Act::Measure(1.0)), (OURS, Act::Measure(2.0)), (GO, Act::Measure(3.0))]);
    let seen = Rc::clone(&fake.seen);
    let outcome = measured(fake, 4, true);
    let order: Vec<Target> = seen.borrow().iter().map(|(target, _)| *target).collect();
    let rounds: Vec<&[Target]> = order.chunks(3).collect();
    assert_eq!(rounds, [[DIRECT, OURS, GO], [OURS, GO, DIRECT], [GO, DIRECT, OURS], [DIRECT, OURS, GO]]);
    assert_eq!(outcome.target(OURS).unwrap().samples.iter().map(|sample| sample["cpu"]).collect::<Vec<_>>(), [2.0; 4]);
}

#[test]
fn warm_ups_come_first_are_short_and_do_not_count() {
    let fake = Fake::new([(DIRECT, Act::Measure(1.0)), (OURS, Act::Measure(2.0))]);
    let seen = Rc::clone(&fake.seen);
    let outcome = measured(fake, 1, false);
    assert_eq!(*seen.borrow(), [(DIRECT, WARM_UP), (OURS, WARM_UP), (DIRECT, TIME), (OURS, TIME)]);
    assert!(outcome.targets.iter().all(|measured| measured.samples.len() == 1));
}

#[test]
fn who_fails_or_is_skipped_is_told_and_the_others_go_on() {
    let fake = Fake::new([
        (OURS, Act::Measure(1.0)),
        (GO, Act::FailAfter(1)),
        (NGINX, Act::Skip("not here")),
        (DIRECT, Act::Measure(1.0)),
    ]);
    let seen = Rc::clone(&fake.seen);
    let outcome = measured(fake, 3, true);
    let missing = |target| outcome.target(target).unwrap().missing.clone();
    assert_eq!(missing(GO), Some(Missing::Failed("it broke".to_owned())));
    assert_eq!(missing(NGINX), Some(Missing::Skipped("not here".to_owned())));
    assert_eq!(outcome.targets.iter().map(|measured| measured.samples.len()).collect::<Vec<_>>(), [3, 1, 0, 3]);
    assert_eq!(seen.borrow().iter().filter(|(target, _)| *target == GO).count(), 2, "it is out after its failure");
    assert!(!outcome.is_bad(), "peers may fail");
}

#[test]
fn a_failure_of_ours_or_of_the_direct_way_is_bad() {
    assert!(measured(Fake::new([(OURS, Act::FailAfter(0))]), 1, true).is_bad());
    assert!(measured(Fake::new([(DIRECT, Act::Break("no upstream"))]), 1, true).is_bad());
    assert!(measured(Fake::new([("ours, 10,000 clusters", Act::Break("no hub"))]), 1, true).is_bad());
    assert!(
        !measured(Fake::new([(OURS, Act::Skip("no h2load")), ("nginx, 2 workers", Act::Break("?"))]), 1, true).is_bad()
    );
}

#[test]
fn a_panic_is_the_failure_of_who_panicked() {
    let outcome = measured(Fake::new([(GO, Act::Panic), (OURS, Act::Measure(1.0))]), 2, true);
    let missing = outcome.target(GO).unwrap().missing.clone();
    assert_eq!(missing, Some(Missing::Failed("it panicked: at go gateway".to_owned())));
    assert_eq!(outcome.target(OURS).unwrap().samples.len(), 2);
}

/// A scenario that does not even begin.
fn stuck(error: fn() -> anyhow::Error) -> Scenario {
    Scenario::new(fake::ABOUT, move |_| Err(error()).context("the upstream"))
}

#[test]
fn a_scenario_that_cannot_begin_is_told_and_bad_unless_something_is_absent() {
    let broken = measured(stuck(|| anyhow::anyhow!("it crashed")), 1, true);
    assert_eq!(broken.missing, Some(Missing::Failed("the upstream: it crashed".to_owned())));
    assert!(broken.is_bad());
    let absent = measured(stuck(|| Absent::new("nginx", "package nginx-light").into()), 1, true);
    assert_eq!(
        absent.missing,
        Some(Missing::Skipped("the upstream: nginx is not here (package nginx-light)".to_owned()))
    );
    assert!(!absent.is_bad());
}
