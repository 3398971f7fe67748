//! A hub on a bad day: known users go on, no unknown one gets in, and strangers learn that the hub
//! is the cause.

use kit::frames::Wire;
use kit::hub::review_faults;
use system_tests::prelude::*;

use super::{Fixture, Victim};

/// More than any test takes: a known user stays known.
const KNOWN: &[&str] =
    &["--authentication-token-webhook-cache-ttl=10m", "--authorization-webhook-cache-authorized-ttl=10m"];
/// Waiting strangers, and how many of them a connection carries.
const STRANGERS: usize = 3_000;
const OF_ONE: usize = 250;

/// Refused, with a text that names the hub.
fn is_told(wire: &Wire, stream: u32) -> bool {
    let Some(seen) = wire.seen(stream).filter(|seen| seen.is_over()) else { return false };
    let told = matches!(seen.status, Some(429 | 500..=504)) && seen.text().contains("hub");
    assert!(told, "{:?} {}", seen.status, seen.text());
    told
}

/// Asks as a user that the hub was never asked about; the answer has to name the hub.
async fn assert_told(wire: &mut Wire, row: &str, target: &str) {
    // A review that is not answered is tried for half a minute.
    const LOOKS: usize = 4;
    let stream = wire.request("GET", target, &[], true).await;
    for _ in 0..LOOKS {
        if wire.outcome(stream).await.is_over() {
            break;
        }
    }
    assert!(is_told(wire, stream), "{row}: {wire:?}");
}

async fn beside_a_victim(call: Call, faults: Vec<(&'static str, Fault)>, stranger: impl Fn(usize) -> String) {
    let fixture = Fixture::with(FakeHub::start().await, KNOWN).await;
    fixture.hub.add_token("another", TokenUser::new("another", &[]));
    let mut own = fixture.direct("victim").await;
    let mut victim = Victim::begin(&mut own, &fixture).await;
    let target = own.places.quick.clone();
    let asked = own.request("GET", &target, &[], true).await;
    assert_eq!(own.outcome(asked).await.status, Some(200));
    for (number, (row, fault)) in faults.into_iter().enumerate() {
        fixture.hub.fail(call, fault);
        let mut wire = fixture.direct(&stranger(number)).await;
        let before = fixture.member.request_count();
        assert_told(&mut wire, row, &format!("{target}-{number}")).await;
        assert_eq!(fixture.member.request_count(), before, "{row}: somebody got in");
        let known = own.request("GET", &target, &[], true).await;
        let seen = own.outcome(known).await;
        assert_eq!(seen.status, Some(200), "{row}: {}", seen.text());
        victim.goes_on(&mut own, row).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_token_review_says_nobody_gets_in_and_the_known_go_on() {
    let faults = review_faults("authentication", "TokenReview", "SubjectAccessReview");
    Box::pin(beside_a_victim(Call::TokenReview, faults, |number| format!("stranger-{number}"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_access_review_says_nobody_gets_in_and_the_known_go_on() {
    let mut faults = review_faults("authorization", "SubjectAccessReview", "TokenReview");
    faults.push(("silence", Fault::Hang));
    Box::pin(beside_a_victim(Call::AccessReview, faults, |_| "another".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_wait_for_a_silent_hub_are_few_and_the_known_go_on() {
    /// New tokens whose review may wait.
    const WAITING: usize = 1024;
    let fixture = Fixture::with(FakeHub::start().await, KNOWN).await;
    let mut own = fixture.direct("victim").await;
    let mut victim = Victim::begin(&mut own, &fixture).await;
    let target = own.places.quick.clone();
    let asked = own.request("GET", &target, &[], true).await;
    assert_eq!(own.outcome(asked).await.status, Some(200));
    fixture.hub.fail(Call::TokenReview, Fault::Hang);
    let before = fixture.member.request_count();
    let mut wires = Vec::new();
    for first in (0..STRANGERS).step_by(OF_ONE) {
        let mut wire = fixture.direct("nobody").await;
        let mut streams = Vec::new();
        for number in first..first + OF_ONE {
            wire.speak_for(&[("authorization", &format!("Bearer stranger-{number}"))]);
            streams.push(wire.request("GET", &target, &[], true).await);
        }
        assert!(wire.answers_ping().await);
        wires.push((wire, streams));
        if first + OF_ONE <= WAITING {
            for (wire, streams) in &mut wires {
                assert!(!streams.iter().any(|stream| is_told(wire, *stream)), "{first} wait, which may");
            }
        }
    }
    becomes(WAIT, "all but those who may wait are told", async || {
        let mut told = 0;
        for (wire, streams) in &mut wires {
            assert!(wire.answers_ping().await);
            told += streams.iter().filter(|stream| is_told(wire, **stream)).count();
        }
        told >= STRANGERS - WAITING
    })
    .await;
    let known = own.request("GET", &target, &[], true).await;
    assert_eq!(own.outcome(known).await.status, Some(200));
    victim.goes_on(&mut own, "the crowd").await;
    assert_eq!(fixture.member.request_count(), before + 1, "nobody got in");
}
