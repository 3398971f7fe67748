//! A hub that is slow, or fails for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::{Election, Identity, Timing};
use super::*;

/// Where 9 s of delay occur: on the way to the hub, on the way back, or both.
const WAYS: [(u32, u32); 3] = [(9, 0), (0, 9), (4, 5)];

#[tokio::test(start_paused = true)]
async fn calls_of_nine_seconds_neither_lose_leadership_nor_double_it() {
    for (there, back) in WAYS {
        let (hub, journal) = (Hub::new(), Journal::default());
        hub.script(move |_| Fate { there: there * SECOND, back: back * SECOND, ..Fate::default() });
        let mut first = Contender::start(&hub, "first", &journal);
        first.becomes(true).await;
        let second = Contender::start(&hub, "second", &journal);
        sleep(600 * SECOND).await;
        assert!(first.is_leading() && !second.is_leading(), "{there} there, {back} back");
        assert_eq!(journal.spans().len(), 1, "{there} there, {back} back");
        let under_way = 10 / 2 + 1;
        let renewals = hub.entries().iter().filter(|entry| entry.call.method == Method::PATCH).count();
        assert!((250..=305 + under_way).contains(&renewals), "no more than one each 2 s: {renewals}");
    }
}

/// From fast to slow in one step, while a contender leads.
#[tokio::test(start_paused = true)]
async fn a_hub_that_becomes_slow_keeps_its_leader() {
    for (there, back) in WAYS {
        let (hub, journal) = (Hub::new(), Journal::default());
        let mut first = Contender::start(&hub, "first", &journal);
        first.becomes(true).await;
        let second = Contender::start(&hub, "second", &journal);
        sleep(7 * SECOND).await;
        hub.script(move |_| Fate { there: there * SECOND, back: back * SECOND, ..Fate::default() });
        sleep(300 * SECOND).await;
        hub.script(|_| Fate::default());
        sleep(60 * SECOND).await;
        assert!(first.is_leading() && !second.is_leading(), "{there} there, {back} back");
        assert_eq!(journal.spans().len(), 1, "{there} there, {back} back");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_outlives_failures_that_end_in_time_and_stops_before_another_may_begin_otherwise() {
    for (code, lasting, survives) in [(500, 9, true), (429, 9, true), (409, 9, true), (500, 13, false)] {
        let (hub, journal) = (Hub::new(), Journal::default());
        let mut first = Contender::start(&hub, "first", &journal);
        first.becomes(true).await;
        sleep(10 * SECOND).await;
        let last = written(&hub);
        hub.script(move |_| Fate { outcome: Outcome::Failed(code), ..Fate::default() });
        sleep(lasting * SECOND).await;
        assert_eq!(first.is_leading(), survives, "{code} for {lasting} s");
        hub.script(|_| Fate::default());
        let span = journal.spans()[0].clone();
        match span.ended {
            None => assert!(span.leading.is_held()),
            Some(ended) => assert!((TERM..=TERM + GRAIN).contains(&(ended - last)), "{:?}", ended - last),
        }
        first.becomes(true).await;
        journal.check();
    }
}

/// Its renewals arrive, but it never gets a response. It does not stop the other from leading later
/// either.
#[tokio::test(start_paused = true)]
async fn a_leader_that_hears_nothing_stops_although_it_is_heard() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let mut second = Contender::start(&hub, "second", &journal);
    sleep(10 * SECOND).await;
    let last = written(&hub);
    hub.script(|call| {
        let outcome = if call.who == "first" { Outcome::Unheard } else { Outcome::Answered };
        Fate { outcome, ..Fate::default() }
    });
    first.becomes(false).await;
    assert!(last.elapsed() <= TERM + GRAIN, "{:?}", last.elapsed());
    second.becomes(true).await;
    journal.check();
}

/// The hub hangs for longer than the process has to end.
#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_a_hub_that_hangs() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    hub.script(|_| Fate { there: 3600 * SECOND, ..Fate::default() });
    let start = Instant::now();
    first.stop().await;
    assert!(start.elapsed() <= 10 * SECOND + GRAIN, "{:?}", start.elapsed());
    journal.check();
}

/// The first try fails. The second succeeds.
#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_tried_again() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let mut failures = 1;
    hub.script(move |_| {
        let outcome = if failures > 0 { Outcome::Failed(500) } else { Outcome::Answered };
        failures -= 1;
        Fate { outcome, ..Fate::default() }
    });
    first.stop().await;
    assert_eq!(hub.lease().expect("a Lease")["spec"]["holderIdentity"], "");
}

/// With a very short retry period, calls that the hub does not answer must not pile up.
#[tokio::test(start_paused = true)]
async fn few_renewals_are_under_way_at_a_time() {
    let hub = Hub::new();
    let timing = Timing::new(LEASE, 10 * SECOND, SECOND / 10).expect("a timing");
    let identity = Identity::named("first").expect("a name");
    let election = Election::new(hub.client("first"), "default", "leader", identity, timing);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    hub.script(move |call| {
        count.fetch_add(usize::from(call.method == Method::PATCH), Ordering::Relaxed);
        let outcome = if call.method == Method::PATCH { Outcome::Unheard } else { Outcome::Answered };
        Fate { outcome, ..Fate::default() }
    });
    let run = election.run(std::future::pending(), |_| std::future::pending::<()>());
    assert!(timeout(5 * SECOND, run).await.is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 8);
}
