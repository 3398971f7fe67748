#![expect(clippy::disallowed_methods, reason = "a moment to count from: no clock is read after it")]

use serde_json::json;

use super::*;
use crate::ocm::delivery::DELIVERY_ANNOTATION;

const PERIOD: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_mins(5);

fn cluster(delivery: &str, condition: Option<(&str, &str)>) -> Value {
    let conditions: Vec<Value> = condition
        .iter()
        .map(|(status, reason)| json!({"type": AVAILABLE, "status": status, "reason": reason}))
        .collect();
    json!({"metadata": {"annotations": {DELIVERY_ANNOTATION: delivery}}, "spec": {"hubAcceptsClient": true},
        "status": {"conditions": conditions}})
}

fn known() -> Value {
    cluster("push", Some(("True", ANSWERS)))
}

fn lost() -> Value {
    cluster("push", Some(("Unknown", UNREACHABLE)))
}

fn away() -> Outcome {
    Outcome::Unreachable("a request failed at the member".to_owned())
}

fn blind() -> Outcome {
    Outcome::NotProbed("the hub does not answer".to_owned())
}

/// The state after these outcomes, each a period after the previous one, while others answer; and
/// the time of the last.
fn after(cluster: &Value, outcomes: &[Outcome], others_answer: bool) -> (Answers, Instant) {
    let mut at = Instant::now();
    let mut answers = Answers::begun(cluster);
    for outcome in outcomes {
        at += PERIOD;
        answers = answers.after(outcome.clone(), at, others_answer);
    }
    (answers, at)
}

fn reason_told(answers: &Answers, cluster: &Value, at: Instant) -> Option<&'static str> {
    answers.condition(cluster, at, true).map(|told| told.reason)
}

#[test]
fn a_condition_has_one_owner() {
    for (delivery, condition, heard, silent) in [
        ("push", None, Owner::Answers, Owner::Answers),
        ("adopt", None, Owner::Answers, Owner::Answers),
        ("pull", None, Owner::Agent, Owner::Agent),
        // An agent's own report stands only while it renews its Lease.
        ("push", Some(("True", "ManagedClusterAvailable")), Owner::Agent, Owner::Answers),
        ("push", Some(("False", "ManagedClusterKubeAPIServerUnavailable")), Owner::Agent, Owner::Answers),
        ("push", Some(("Unknown", "ManagedClusterLeaseUpdateStopped")), Owner::Answers, Owner::Answers),
        ("push", Some(("Unknown", UNREACHABLE)), Owner::Answers, Owner::Answers),
        ("pull", Some(("True", ANSWERS)), Owner::Agent, Owner::Agent),
    ] {
        let cluster = cluster(delivery, condition);
        assert_eq!([false, true].map(|is_silent| owner(&cluster, is_silent)), [heard, silent], "{cluster}");
    }
    assert_eq!(owner(&json!({}), true), Owner::Agent);
}

#[test]
fn only_what_answers_said_is_tainted_by_them() {
    assert!(is_by_answers(&known()) && is_by_answers(&lost()));
    let stopped = cluster("push", Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
    assert!(!is_by_answers(&stopped) && !is_by_answers(&cluster("push", None)));
    assert!(!is_by_answers(&cluster("", Some(("True", ANSWERS)))), "nothing is delivered to it");
}

#[test]
fn one_that_nobody_accepted_is_not_judged() {
    for accepted in [json!(false), json!("true"), Value::Null] {
        let mut unaccepted = known();
        unaccepted["spec"]["hubAcceptsClient"] = accepted;
        assert_eq!(owner(&unaccepted, true), Owner::Agent, "{unaccepted}");
    }
}

#[test]
fn one_that_answers_is_available_at_once_and_one_that_does_not_after_its_grace() {
    let new = cluster("push", None);
    let begin = Instant::now();
    let answers = Answers::begun(&new);
    assert_eq!(answers.condition(&new, begin, true), None, "nothing is known");
    let answers = answers.after(Outcome::Healthy, begin, true);
    let told = answers.condition(&new, begin, false).map(|told| (told.status, told.reason));
    assert_eq!(told, Some(("True", ANSWERS)));
    let known = known();
    assert_eq!((answers.condition(&known, begin, true), answers.wait(&known, begin)), (None, PERIOD));
    let first = begin + 3 * GRACE;
    let answers = answers.after(away(), first, true);
    assert!(answers.is_away() && answers.condition(&known, first, true).is_none(), "it has all its time from here");
    let answers = answers.after(away(), first + PERIOD, true);
    let end = first + GRACE;
    assert_eq!(answers.condition(&known, first + GRACE.saturating_sub(LEAST), true), None);
    let told = answers.condition(&known, end, true).map(|told| (told.status, told.reason, told.message));
    let message = "The member does not answer: a request failed at the member.".to_owned();
    assert_eq!(told, Some(("Unknown", UNREACHABLE, message)));
    assert_eq!(answers.condition(&known, end, false), None, "without a probe, nobody is lost");
}

#[test]
fn one_failure_is_no_loss_however_long_ago_it_was() {
    let (answers, at) = after(&known(), &[away()], true);
    assert_eq!(answers.condition(&known(), at + 9 * GRACE, true), None);
    let again = answers.clone().after(Outcome::Healthy, at + GRACE, true).after(away(), at + 2 * GRACE, true);
    assert_eq!(again.condition(&known(), at + 2 * GRACE, true), None, "it answered in between");
    let twice = answers.after(away(), at + GRACE, true);
    assert_eq!(reason_told(&twice, &known(), at + GRACE), Some(UNREACHABLE));
}

#[test]
fn a_loss_keeps_its_reason_and_ends_after_some_answers_in_a_row() {
    let (other, at) = after(&lost(), &[away(), away(), away(), away(), away(), away(), Outcome::NotReady], true);
    assert_eq!(other.condition(&lost(), at, true), None, "another taint would begin its time anew");
    let not_ready = cluster("push", Some(("False", NOT_READY)));
    let (answers, at) = after(&not_ready, &[away(), away(), away(), away(), away(), away()], true);
    assert_eq!(answers.condition(&not_ready, at, true), None);
    let well = Outcome::Healthy;
    for (outcomes, back) in [
        (vec![well.clone(), well.clone()], None),
        (vec![well.clone(), well.clone(), away(), well.clone()], None),
        (vec![well.clone(), well.clone(), well.clone()], Some(ANSWERS)),
        (vec![well.clone(), well.clone(), blind(), well], Some(ANSWERS)),
    ] {
        let (answers, at) = after(&lost(), &outcomes, true);
        assert_eq!(reason_told(&answers, &lost(), at), back, "{outcomes:?}");
    }
}

#[test]
fn a_condition_is_as_it_is_to_be_by_status_and_reason() {
    let (answers, at) = after(&known(), &[Outcome::Healthy], true);
    for wrong in [("False", ANSWERS), ("True", UNREACHABLE), ("True", NOT_READY)] {
        let told = reason_told(&answers, &cluster("push", Some(wrong)), at);
        assert_eq!(told, Some(ANSWERS), "{wrong:?}");
    }
    let (answers, at) = after(&known(), &[away(), away(), away(), away(), away(), away()], true);
    let wrong = cluster("push", Some(("True", UNREACHABLE)));
    assert_eq!(reason_told(&answers, &wrong, at), Some(UNREACHABLE));
}

#[test]
fn a_gateway_that_is_away_says_nothing_of_members() {
    let (answers, at) = after(&known(), &[away(), away(), away(), away(), away(), blind(), away()], false);
    assert_eq!(answers.condition(&known(), at + GRACE.saturating_sub(LEAST), true), None);
    let again = answers.after(away(), at + GRACE, false);
    assert_eq!(reason_told(&again, &known(), at + GRACE), Some(UNREACHABLE));
}

#[test]
fn where_others_answer_a_blind_probe_gives_no_time() {
    let (answers, at) = after(&known(), &[away(), away(), away(), blind(), blind(), away()], true);
    assert_eq!(reason_told(&answers, &known(), at), Some(UNREACHABLE));
    let (answers, at) = after(&known(), &[blind(), blind(), blind(), blind(), blind(), blind(), blind()], true);
    assert_eq!(answers.condition(&known(), at, true), None, "and loses nobody");
    let (answers, at) = after(&known(), &[away(), away(), away(), away(), away(), blind()], true);
    assert_eq!(answers.condition(&known(), at, true), None, "nor does it after failures");
}

#[test]
fn one_that_says_that_it_is_not_ready_is_not_available() {
    let (answers, at) = after(&known(), &[away(), away(), away(), away(), away(), Outcome::NotReady], true);
    let told = answers.condition(&known(), at, true).map(|told| (told.status, told.reason));
    assert_eq!(told, Some(("False", NOT_READY)));
}

#[test]
fn probes_are_as_often_as_leases_within_limits_and_the_last_is_at_the_end_of_the_grace() {
    let period_of = |seconds: Value| {
        let mut cluster = known();
        cluster["spec"]["leaseDurationSeconds"] = seconds;
        (period(&cluster).as_secs(), patience(&cluster).as_secs())
    };
    assert_eq!([json!(0), json!(1), json!(10)].map(period_of), [(60, 300), (10, 20), (10, 50)]);
    assert_eq!([json!(299), json!(3600)].map(period_of), [(299, 1495), (300, 18_000)]);
    assert_eq!(period_of(json!(i32::MAX)).0, 300);
    let (answers, at) = after(&known(), &[away()], true);
    let waits = [0, 239, 250, 299, 300, 900].map(|after| {
        let now = at + Duration::from_secs(after);
        answers.wait(&known(), now).as_secs()
    });
    assert_eq!(waits, [60, 60, 50, 1, 60, 60]);
}

/// Most of a fleet is silent, and some members are not.
fn most() -> Answering {
    Answering { untold: 3, healthy: 1, known: 3, judged: 3, witnesses: 1 }
}

fn doubted(answers: Answers, at: Instant) -> Answers {
    answers.doubted(most(), &known(), at, || false)
}

#[test]
fn what_is_doubted_has_all_its_time_afterwards() {
    let (answers, at) = after(&known(), &[away(), away(), away(), away(), away(), away(), away()], true);
    let held = doubted(answers, at);
    assert!(held.is_held() && held.condition(&known(), at, true).is_none());
    let first = at + PERIOD;
    let answers = held.after(away(), first, true);
    assert_eq!(answers.condition(&known(), first + GRACE.saturating_sub(LEAST), true), None);
    let again = answers.after(away(), first + GRACE, true);
    assert_eq!(reason_told(&again, &known(), first + GRACE), Some(UNREACHABLE));
}

#[test]
fn one_that_was_held_counts_so_until_it_answers_or_is_lost() {
    let (once, at) = after(&known(), &[away()], true);
    assert!(!doubted(once.clone(), at).is_held(), "one failure may be nothing");
    let held = doubted(once.after(away(), at + PERIOD, true), at + PERIOD).after(away(), at + 2 * PERIOD, true);
    assert!(held.is_held() && held.clone().after(blind(), at + 3 * PERIOD, false).is_held());
    assert!(!held.clone().after(Outcome::Healthy, at + 3 * PERIOD, true).is_held());
    let mut held = held;
    held.of(&lost());
    assert!(!held.is_held());
}

#[test]
fn a_loss_is_held_for_half_an_hour_while_some_answer_and_as_long_as_none_does() {
    let none = Answering { healthy: 0, witnesses: 0, ..most() };
    let (mut answers, begin) = after(&known(), &[away(), away()], true);
    let mut hold = |at: Instant, fleet: Answering, is_next: bool| {
        answers = answers.clone().after(away(), at, true).doubted(fleet, &known(), at, || is_next);
        reason_told(&answers, &known(), at)
    };
    let at = |minutes: u64| begin + Duration::from_mins(minutes);
    assert_eq!([0, 1, 29].map(|minutes| hold(at(minutes), most(), true)), [None; 3]);
    assert_eq!(hold(at(60), none, true), None, "none answers");
    assert_eq!([61, 90].map(|minutes| hold(at(minutes), most(), true)), [None; 2], "it is held anew from here");
    assert_eq!(hold(at(91), most(), false), None, "others go before");
    assert_eq!(hold(at(92), most(), true), Some(UNREACHABLE));
}

/// A path that fails gradually within ten minutes: members cut off later have answered since.
#[test]
fn a_way_that_goes_bit_by_bit_takes_one_after_the_other() {
    const MEMBERS: usize = 40;
    const BETWEEN: Duration = Duration::from_mins(5);
    let (start, step) = (Instant::now(), Duration::from_secs(15));
    let mut members: Vec<(Value, Answers)> = (0..MEMBERS).map(|_| (known(), Answers::begun(&known()))).collect();
    let (mut released, mut told_at) = (None::<Instant>, Vec::new());
    for tick in 0..4 * 60_u32 {
        let at = start + tick * step;
        // Each once a minute, in four groups.
        for one in (0..MEMBERS).filter(|one| one % 4 == tick as usize % 4) {
            let is_cut = one > 0 && tick as usize >= 8 + one;
            let others: Vec<Answers> =
                members.iter().enumerate().filter(|(other, _)| *other != one).map(|(_, it)| it.1.clone()).collect();
            let (cluster, answers) = &mut members[one];
            let outcome = if is_cut { away() } else { Outcome::Healthy };
            *answers = answers.clone().after(outcome, at, true);
            if answers.is_away() {
                let fleet = Answering::of(answers, others.iter(), at);
                let next = || {
                    let is_time = released.is_none_or(|last| at >= last + BETWEEN);
                    released = if is_time { Some(at) } else { released };
                    is_time
                };
                *answers = answers.clone().weighed(fleet, cluster, at, next);
            }
            if answers.condition(cluster, at, true).is_some() {
                told_at.push(at);
                *cluster = lost();
                answers.of(cluster);
            }
        }
    }
    // Those before half are silent are lost independently.
    assert!((10..=30).contains(&told_at.len()), "{} are lost in an hour", told_at.len());
    let late: Vec<_> = told_at.iter().filter(|at| **at > start + Duration::from_mins(12)).collect();
    assert!(late.windows(2).all(|pair| *pair[1] - *pair[0] >= BETWEEN), "{} late ones", late.len());
    assert!(!late.is_empty(), "no hostile cluster holds them for ever");
    assert!(members.iter().any(|(_, answers)| answers.is_held()), "those that wait are counted");
}

/// It returns with three answers, and falls silent again: it waits behind the members that stay
/// silent.
#[test]
fn who_falls_silent_again_and_again_is_not_told_before_others() {
    let fleet = Answering { untold: 5, healthy: 2, known: 5, judged: 5, witnesses: 5 };
    assert!(fleet.is_strained() && !fleet.is_doubtful());
    let outcomes = vec![away(); 7];
    let (honest, at) = after(&known(), &outcomes, true);
    let waits = honest.weighed(fleet, &known(), at, || false);
    assert!(waits.is_held() && waits.condition(&known(), at, true).is_none());
    let late = at + PERIOD;
    let flapper = Answers::begun(&known()).after(away(), late, true);
    assert!(waits.waits_before(&flapper) && !flapper.waits_before(&waits));
    let next = waits.clone().weighed(fleet, &known(), at, || true);
    assert_eq!(reason_told(&next, &known(), at), Some(UNREACHABLE));
    assert!(!next.waits_before(&flapper), "it has its turn");
    assert!(!doubted(waits, at).waits_before(&flapper), "what is doubted has its own time");
}

#[test]
fn most_of_a_fleet_is_not_lost_at_once() {
    let doubtful: Vec<(usize, usize)> = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (1, 4), (500, 1000), (499, 1000)]
        .into_iter()
        .filter(|(healthy, judged)| {
            let (healthy, judged) = (*healthy, *judged);
            Answering { untold: judged, healthy, known: judged, judged, witnesses: healthy }.is_doubtful()
        })
        .collect();
    assert_eq!(doubtful, [(1, 3), (1, 4), (499, 1000)]);
}

#[test]
fn health_is_an_answer_of_late_and_nothing_else() {
    let fleet = |members: &[&Answers], at| Answering::of(members[0], members[1..].iter().copied(), at);
    let all = |healthy| Answering { untold: 3, healthy, known: 3, judged: 3, witnesses: healthy };
    let (well, at) = after(&known(), &[Outcome::Healthy], true);
    assert_eq!(fleet(&[&well, &well, &well], at + 2 * PERIOD), all(3));
    let stale = fleet(&[&well, &well, &well], at + 2 * PERIOD + LEAST);
    assert_eq!((stale, stale.is_doubtful()), (all(0), true));
    let (blind_since, at) = after(&known(), &[Outcome::Healthy, blind(), blind(), blind()], false);
    let never = Answers::begun(&known()).after(blind(), at, false);
    let (failed, _) = after(&known(), &[Outcome::Healthy, away()], true);
    let none = fleet(&[&failed, &blind_since, &never], at);
    assert_eq!((none, none.is_doubtful()), (all(0), true));
}

#[test]
fn those_lost_long_ago_and_those_that_never_answered_are_left_out() {
    let (well, at) = after(&known(), &[Outcome::Healthy], true);
    let (gone, _) = after(&lost(), &[away()], true);
    let (never, _) = after(&cluster("push", None), &[away()], true);
    let (dying, _) = after(&known(), &[away()], true);
    let members = [&gone, &gone, &gone, &gone, &gone, &never, &never, &never, &well, &well];
    let fleet = Answering::of(&dying, members.into_iter(), at);
    assert_eq!(
        (fleet, fleet.is_doubtful()),
        (Answering { untold: 6, healthy: 2, known: 3, judged: 3, witnesses: 2 }, false)
    );
    // If no member of a new fleet answers at all, nothing more is known.
    assert!(Answering::of(&never, [&never, &never].into_iter(), at).is_doubtful());
}

#[test]
fn who_answers_now_and_then_or_was_silent_before_speaks_for_no_silence_of_the_way() {
    let start = Instant::now();
    let of = |outcomes: &[(u64, Outcome)]| {
        let each = |answers: Answers, (minute, outcome): &(u64, Outcome)| {
            answers.after(outcome.clone(), start + Duration::from_mins(*minute), true)
        };
        outcomes.iter().fold(Answers::begun(&known()), each)
    };
    let well = of(&[(19, Outcome::Healthy)]);
    let dead = of(&[(9, Outcome::Healthy), (10, away()), (19, away())]);
    let is_doubtful = |others: &[&Answers]| {
        Answering::of(&dead, others.iter().copied(), start + Duration::from_mins(19)).is_doubtful()
    };
    let liar = of(&[(9, away()), (14, Outcome::Healthy), (15, away()), (19, away())]);
    let sleeper = of(&[(6, Outcome::Healthy), (7, away()), (19, away())]);
    let with_it = of(&[(8, Outcome::Healthy), (9, away()), (19, away())]);
    assert!(!is_doubtful(&[&liar, &well]) && !is_doubtful(&[&liar, &liar, &well, &well]));
    assert!(!is_doubtful(&[&sleeper, &well]) && !is_doubtful(&[&sleeper, &sleeper, &sleeper, &well]));
    assert!(is_doubtful(&[&with_it, &well]) && is_doubtful(&[&with_it, &with_it, &well, &well]));
    // None answers any more: earlier answers do not matter.
    assert!(is_doubtful(&[&liar, &liar]) && is_doubtful(&[&sleeper, &sleeper]));
}

/// For example, the chart's `manifestworks.clusters` does not name a cluster with delivery.
#[test]
fn those_that_nobody_may_ask_say_nothing_of_the_way() {
    let (well, at) = after(&known(), &[Outcome::Healthy], true);
    let (dying, _) = after(&known(), &[away()], true);
    let (unasked, _) = after(&known(), &[blind(), blind(), blind()], true);
    let others = [&unasked, &unasked, &unasked, &unasked, &well, &well];
    let fleet = Answering::of(&dying, others.into_iter(), at);
    assert_eq!(
        (fleet, fleet.is_doubtful()),
        (Answering { untold: 3, healthy: 2, known: 3, judged: 3, witnesses: 2 }, false)
    );
    let (once, _) = after(&known(), &[blind()], true);
    let (together, _) = after(&known(), &[blind(), blind(), blind()], false);
    for other in [&once, &together] {
        assert!(Answering::of(&dying, [other, other, &well].into_iter(), at).is_doubtful(), "it may be the way");
    }
}

#[test]
fn no_cluster_chooses_to_be_silent_for_ever() {
    let mut endless = known();
    endless["spec"]["leaseDurationSeconds"] = i32::MAX.into();
    assert_eq!(patience(&endless), LONGEST_GRACE);
    let (answers, at) = after(&endless, &[away(), away()], true);
    let told = answers.condition(&endless, at + LONGEST_GRACE, true).expect("a loss");
    assert!(told.message.contains("leaseDurationSeconds counts as 3600"), "{}", told.message);
}
