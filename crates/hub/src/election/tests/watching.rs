//! Watches that miss events: the waiting contender must read the Lease itself.

use super::*;

/// Sets the result of all watches.
fn watches(hub: &Hub, outcome: Outcome) {
    hub.script(move |call| {
        let outcome = if call.watches.is_some() { outcome } else { Outcome::Answered };
        Fate { outcome, ..Fate::default() }
    });
}

/// The longest silence of a watch before the contender reads the Lease.
const SILENCE: Duration = Duration::from_millis(4800);
/// A missing permission, a hub that ends each watch at once, and a proxy that buffers everything.
const FAULTS: [(Outcome, Duration); 6] = [
    (Outcome::Failed(403), PAUSE),
    (Outcome::Failed(410), PAUSE),
    (Outcome::Failed(500), PAUSE),
    (Outcome::Cut, PAUSE),
    (Outcome::Mute, SILENCE),
    (Outcome::Unheard, SILENCE),
];

#[tokio::test(start_paused = true)]
async fn one_whose_watches_fail_looks_now_and_then_and_takes_over_all_the_same() {
    for (outcome, late) in FAULTS {
        let (hub, journal) = (Hub::new(), Journal::default());
        watches(&hub, outcome);
        let mut first = Contender::start(&hub, "first", &journal);
        first.becomes(true).await;
        let mut second = Contender::start(&hub, "second", &journal);
        sleep(60 * SECOND).await;
        assert!(first.is_leading() && !second.is_leading(), "{outcome:?}");
        let asked = hub.entries().iter().filter(|entry| entry.call.who == "second").count();
        assert!((8..=61).contains(&asked), "a look and a watch each time, at most: {asked} {outcome:?}");
        first.kill().await;
        let last = written(&hub);
        second.becomes(true).await;
        let took = last.elapsed();
        assert!((LEASE..=LEASE + late + GRAIN).contains(&took), "{outcome:?}: {took:?}");
        journal.check();
    }
}

/// A missing permission is tried rarely, and works once it is granted.
#[tokio::test(start_paused = true)]
async fn one_that_may_not_watch_asks_for_it_once_a_minute() {
    let (hub, journal) = (Hub::new(), Journal::default());
    watches(&hub, Outcome::Failed(403));
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let _second = Contender::start(&hub, "second", &journal);
    sleep(59 * SECOND).await;
    let watched =
        || hub.entries().iter().filter(|entry| entry.call.who == "second" && entry.call.watches.is_some()).count();
    assert_eq!(watched(), 1);
    hub.script(|_| Fate::default());
    sleep(65 * SECOND).await;
    assert_eq!(watched(), 2);
    let asked = hub.entries().len();
    sleep(60 * SECOND).await;
    let asked = hub.entries().split_off(asked).iter().filter(|entry| entry.call.who == "second").count();
    assert_eq!(asked, 0, "it follows by a watch");
}

/// The time counts on the contender's own clock, from when the event arrived: a late event does not
/// make the Lease expire earlier.
#[tokio::test(start_paused = true)]
async fn what_a_watch_tells_late_counts_from_when_it_was_told() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let late = 3 * SECOND;
    hub.script(move |call| Fate { back: if call.watches.is_some() { late } else { SECOND / 100 }, ..Fate::default() });
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let mut second = Contender::start(&hub, "second", &journal);
    sleep(60 * SECOND).await;
    assert!(!second.is_leading());
    first.kill().await;
    let last = written(&hub);
    second.becomes(true).await;
    assert!((LEASE..=LEASE + late + SECOND / 10).contains(&last.elapsed()), "{:?}", last.elapsed());
    journal.check();
}

#[tokio::test(start_paused = true)]
async fn one_that_follows_a_leader_asks_nothing_of_the_hub() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let second = Contender::start(&hub, "second", &journal);
    sleep(250 * SECOND).await;
    let asked = hub.entries().iter().filter(|entry| entry.call.who == "second").count();
    assert_eq!((asked, second.is_leading()), (2, false), "a look and a watch");
}
