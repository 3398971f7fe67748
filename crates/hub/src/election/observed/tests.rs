//! The verdicts for what a contender saw and when.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

use super::*;

const LASTS: Duration = Duration::from_secs(15);

fn observed() -> Observed {
    Observed::new(Identity::named("me").expect("a name"), LASTS)
}

/// The record of `holder`, for `lasts` seconds, renewed at a second of the holder's own clock.
fn record(holder: &str, lasts: u64, renewed: i64) -> Record {
    Record {
        holder: (!holder.is_empty()).then(|| holder.to_owned()),
        lasts: Some(Duration::from_secs(lasts)),
        renewed: Timestamp::from_second(renewed).ok().map(MicroTime),
        acquired: None,
        transitions: 4,
    }
}

/// Shows records to one observer, each at its second, and compares the verdicts. `Held` contains
/// the second until which the Lease is held.
fn table(rows: &[(u64, Option<Record>, Expected)]) {
    let (start, mut observed) = (Instant::now(), observed());
    let at = |second: u64| start + Duration::from_secs(second);
    for (second, record, expected) in rows {
        let verdict = observed.see(record.clone(), at(*second));
        let expected = match *expected {
            Create => Verdict::Create,
            Take(transitions) => Verdict::Take { transitions },
            Resume => Verdict::Resume,
            Held(until) => Verdict::Held(at(until)),
        };
        assert_eq!(verdict, expected, "at {second}: {record:?}");
    }
}

#[derive(Clone, Copy)]
enum Expected {
    Create,
    Take(i32),
    Resume,
    Held(u64),
}
use Expected::{Create, Held, Resume, Take};

#[test]
fn a_lease_that_nobody_holds_is_for_whoever_comes() {
    table(&[(0, None, Create)]);
    table(&[(0, Some(Record::default()), Take(1))]);
    table(&[(0, Some(record("", 1, 1000)), Take(5))]);
    table(&[(0, Some(record("other", 15, 1000)), Held(15)), (2, Some(record("", 1, 1002)), Take(5))]);
}

#[test]
fn a_holder_is_gone_when_its_own_duration_has_passed_without_a_change() {
    let (first, second) = (record("other", 20, 1000), record("other", 20, 1001));
    table(&[
        (3, Some(first.clone()), Held(23)),
        (10, Some(first.clone()), Held(23)),
        (22, Some(first), Held(23)),
        (22, Some(second.clone()), Held(42)),
        (41, Some(second.clone()), Held(42)),
        (42, Some(second), Take(5)),
    ]);
}

/// The clocks differ by hours, in both directions: only a change counts.
#[test]
fn the_holders_clock_is_not_ours() {
    for renewed in [0, 4_000_000_000] {
        table(&[
            (0, Some(record("other", 15, renewed)), Held(15)),
            (14, Some(record("other", 15, renewed - 3600)), Held(29)),
            (29, Some(record("other", 15, renewed - 3600)), Take(5)),
        ]);
    }
}

#[test]
fn any_change_of_the_record_is_a_sign_of_life() {
    let first = record("other", 15, 1000);
    let acquired = Record { acquired: first.renewed.clone(), ..first.clone() };
    let longer = Record { lasts: Some(2 * LASTS), ..acquired.clone() };
    let third = Record { holder: Some("third".to_owned()), ..longer.clone() };
    table(&[
        (0, Some(first), Held(15)),
        (10, Some(acquired), Held(25)),
        (20, Some(longer), Held(50)),
        (40, Some(third), Held(70)),
    ]);
}

#[test]
fn a_holder_without_a_duration_has_ours() {
    let record = Record { lasts: None, ..record("other", 0, 1000) };
    table(&[(0, Some(record.clone()), Held(15)), (15, Some(record), Take(5))]);
}

#[test]
fn what_is_ours_we_resume_at_once() {
    table(&[(0, Some(record("me", 15, 1000)), Resume), (100, Some(record("me", 15, 1000)), Resume)]);
}

#[test]
fn a_lease_deleted_under_its_holder_is_made_anew_when_the_holder_is_gone() {
    let other = record("other", 15, 1000);
    table(&[(0, Some(other.clone()), Held(15)), (5, None, Held(20)), (19, None, Held(20)), (20, None, Create)]);
    // The holder may have renewed it a moment before, unseen.
    table(&[(0, Some(other.clone()), Held(15)), (14, None, Held(29)), (29, None, Create)]);
    table(&[(0, Some(other.clone()), Held(15)), (100, None, Held(115)), (101, Some(other), Held(115))]);
    table(&[(0, Some(record("me", 15, 1000)), Resume), (1, None, Create)]);
}

#[test]
fn transitions_end_at_the_largest_number() {
    table(&[(0, Some(Record { transitions: i32::MAX, ..record("", 1, 0) }), Take(i32::MAX))]);
}
