//! Contenders on a scripted hub, with paused time.

mod contender;
mod hub;
mod slow;
mod stuck;
mod tampered;
mod together;
mod watching;

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use self::contender::{Contender, Journal, election};
use self::hub::{Fate, Hub, Outcome};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(15);
const TERM: Duration = Duration::from_secs(12);
/// The longest pause between two reads of a contender that cannot watch.
const PAUSE: Duration = Duration::from_millis(2400);
/// Timers have a resolution of one millisecond.
const GRAIN: Duration = Duration::from_millis(3);

/// When the Lease was last written.
fn written(hub: &Hub) -> Instant {
    let written = |entry: &hub::Entry| entry.call.method != Method::GET && entry.status < 300;
    hub.entries().into_iter().rev().find(written).expect("a write").at
}

#[tokio::test(start_paused = true)]
async fn the_first_makes_the_lease_and_leads() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    assert!(first.becomes(true).await < SECOND);
    let spec = hub.lease().expect("a Lease")["spec"].clone();
    assert_eq!(spec["holderIdentity"], "first");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    assert_eq!(spec["acquireTime"], spec["renewTime"]);
    let time = spec["renewTime"].as_str().expect("a time");
    assert_eq!(time.len(), "2026-01-02T03:04:05.678901Z".len(), "{time}");
    sleep(60 * SECOND).await;
    let renewed = hub.lease().expect("a Lease")["spec"].clone();
    assert_ne!(renewed["renewTime"], spec["renewTime"]);
    assert_eq!(renewed["renewTime"].as_str().expect("a time").len(), time.len());
    assert_eq!(renewed["acquireTime"], spec["acquireTime"]);
    let renewals = hub.entries().len();
    assert!((31..=33).contains(&renewals), "one each 2 s: {renewals}");
    assert_eq!(journal.spans().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_replaced_when_its_lease_has_passed() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let mut second = Contender::start(&hub, "second", &journal);
    sleep(20 * SECOND).await;
    assert!(!second.is_leading());
    first.kill().await;
    let last = written(&hub);
    second.becomes(true).await;
    // Exactly when the Lease expires.
    assert!((LEASE..=LEASE + GRAIN).contains(&last.elapsed()), "{:?}", last.elapsed());
    let spec = hub.lease().expect("a Lease")["spec"].clone();
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("second"), &json!(1)));
    journal.check();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_is_replaced_at_once_and_its_work_is_gone_by_then() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let mut second = Contender::start(&hub, "second", &journal);
    sleep(20 * SECOND).await;
    let seen = journal.clone();
    hub.script(move |call| {
        if call.body.contains("acquireTime") && call.who == "first" {
            let span = &seen.spans()[0];
            assert!(span.ended.is_some() && !span.leading.is_held(), "released while it works");
        }
        Fate::default()
    });
    first.stop().await;
    second.becomes(true).await;
    let entries = hub.entries();
    let is_release = |entry: &&hub::Entry| entry.call.who == "first" && entry.call.body.contains("acquireTime");
    let release = entries.iter().rfind(is_release).expect("a release");
    let is_set = |field: &str, value: Value| {
        let patch: Value = serde_json::from_str(&release.call.body).expect("a JSON patch");
        let set = json!({"op": "add", "path": format!("/spec/{field}"), "value": value});
        patch.as_array().expect("a list").contains(&set)
    };
    assert!(is_set("holderIdentity", json!("")) && is_set("leaseDurationSeconds", json!(1)), "{release:?}");
    let begun = journal.spans().last().expect("another").begun;
    assert!(begun - release.at <= GRAIN, "{:?}", begun - release.at);
    let spec = hub.lease().expect("a Lease")["spec"].clone();
    assert_eq!((&spec["leaseDurationSeconds"], &spec["leaseTransitions"]), (&json!(15), &json!(1)));
    journal.check();
}

/// Both read the same version, and both write.
#[tokio::test(start_paused = true)]
async fn of_two_that_take_the_lease_over_one_is_told_409_and_waits() {
    let (hub, journal) = (Hub::new(), Journal::default());
    hub.change(|lease| *lease = Some(json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": ""}})));
    hub.script(|_| Fate { back: SECOND / 10, ..Fate::default() });
    let contenders = ["first", "second"].map(|who| Contender::start(&hub, who, &journal));
    sleep(40 * SECOND).await;
    assert_eq!(contenders.iter().filter(|contender| contender.is_leading()).count(), 1);
    assert_eq!(hub.entries().iter().filter(|entry| entry.status == 409).count(), 1);
    assert_eq!(journal.spans().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_gives_the_lease_up_and_what_it_returns_is_returned() {
    let hub = Hub::new();
    let election = election(&hub, "first", "first");
    let leads = election.leads();
    let end = election.run(std::future::pending(), |leading| async move {
        assert!(leading.is_held());
        sleep(30 * SECOND).await;
        (7, leading)
    });
    let (value, leading) = end.await.expect("an end");
    assert_eq!((value, leading.is_held(), *leads.borrow()), (7, false, false));
    assert_eq!(hub.lease().expect("a Lease")["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn one_that_stops_without_leading_leaves_the_lease_alone() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let second = Contender::start(&hub, "second", &journal);
    sleep(10 * SECOND).await;
    second.stop().await;
    let of_second: Vec<_> = hub.entries().into_iter().filter(|entry| entry.call.who == "second").collect();
    assert!(of_second.iter().all(|entry| entry.call.method == Method::GET));
    assert_eq!(of_second.len(), 2, "a look and a watch: {of_second:?}");
}

/// Its claim may be carried out after it stopped, or may have been carried out already.
#[tokio::test(start_paused = true)]
async fn one_that_stops_while_it_claims_gives_up_what_it_may_have_got() {
    let (hub, journal) = (Hub::new(), Journal::default());
    hub.script(|call| {
        let outcome = if call.method == Method::POST { Outcome::Unheard } else { Outcome::Answered };
        Fate { outcome, ..Fate::default() }
    });
    let first = Contender::start(&hub, "first", &journal);
    sleep(SECOND).await;
    assert_eq!(hub.lease().expect("a Lease")["spec"]["holderIdentity"], "first");
    first.stop().await;
    assert_eq!(hub.lease().expect("a Lease")["spec"]["holderIdentity"], "");
    assert!(journal.spans().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_election_that_is_dropped_leads_no_longer() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    assert!(journal.spans()[0].leading.is_held());
    first.kill().await;
    journal.check();
    assert_eq!(hub.lease().expect("a Lease")["spec"]["holderIdentity"], "first", "nobody could give it up");
}

#[tokio::test(start_paused = true)]
async fn an_unheard_claim_is_resumed() {
    let (hub, journal) = (Hub::new(), Journal::default());
    hub.script(|call| {
        let outcome = if call.method == Method::PATCH { Outcome::Answered } else { Outcome::Unheard };
        Fate { outcome: if call.method == Method::GET { Outcome::Answered } else { outcome }, ..Fate::default() }
    });
    let mut first = Contender::start(&hub, "first", &journal);
    // The first renewal proves what the claim's response would have proved.
    assert!(first.becomes(true).await <= 2 * SECOND + GRAIN);
    sleep(60 * SECOND).await;
    assert_eq!(journal.spans().len(), 1);
    assert_eq!(hub.lease().expect("a Lease")["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_refuses_is_asked_again_for_ever() {
    let (hub, journal) = (Hub::new(), Journal::default());
    hub.script(|_| Fate { outcome: Outcome::Failed(403), ..Fate::default() });
    let mut first = Contender::start(&hub, "first", &journal);
    sleep(60 * SECOND).await;
    let looks = hub.entries().len();
    assert!((25..=31).contains(&looks), "one each 2 to 2.4 s: {looks}");
    hub.script(|call| {
        let outcome = if call.method == Method::GET { Outcome::Answered } else { Outcome::Failed(403) };
        Fate { outcome, ..Fate::default() }
    });
    sleep(60 * SECOND).await;
    let claims = hub.entries().len() - looks;
    assert!((50..=62).contains(&claims), "a look and a claim each time: {claims}");
    hub.script(|_| Fate::default());
    assert!(first.becomes(true).await <= PAUSE + GRAIN);
}
