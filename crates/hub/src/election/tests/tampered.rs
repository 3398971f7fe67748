//! A person edits the Lease.

use super::*;

#[tokio::test(start_paused = true)]
async fn one_that_finds_another_in_its_lease_stops_with_the_next_renewal_and_does_not_fight() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    sleep(10 * SECOND).await;
    hub.change(|lease| lease.as_mut().expect("a Lease")["spec"]["holderIdentity"] = json!("thief"));
    let stolen = Instant::now();
    assert!(first.becomes(false).await <= 2 * SECOND + GRAIN);
    assert_eq!(hub.lease().expect("a Lease")["spec"]["holderIdentity"], "thief");
    journal.check();
    // The thief never renews, so it loses the Lease like any silent holder.
    first.becomes(true).await;
    let until_then = stolen.elapsed();
    assert!((LEASE..=LEASE + 2 * SECOND + 2 * PAUSE).contains(&until_then), "{until_then:?}");
    assert_eq!(hub.lease().expect("a Lease")["spec"]["leaseTransitions"], 1);
}

/// Otherwise others would take it over too early.
#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_shortened_is_as_long_as_before_with_the_next_renewal() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    hub.change(|lease| lease.as_mut().expect("a Lease")["spec"]["leaseDurationSeconds"] = json!(1));
    sleep(2 * SECOND + GRAIN).await;
    assert_eq!(hub.lease().expect("a Lease")["spec"]["leaseDurationSeconds"], 15);
}

#[tokio::test(start_paused = true)]
async fn a_lease_deleted_under_its_leader_makes_nobody_lead_beside_it() {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut first = Contender::start(&hub, "first", &journal);
    first.becomes(true).await;
    let second = Contender::start(&hub, "second", &journal);
    sleep(5 * SECOND).await;
    // The leader's renewals are delayed meanwhile.
    hub.script(|call| match (call.who, &call.method) {
        ("first", &Method::PATCH) => Fate { there: 5 * SECOND, ..Fate::default() },
        _ => Fate::default(),
    });
    hub.change(|lease| *lease = None);
    assert!(first.becomes(false).await > PAUSE, "the other has looked");
    first.becomes(true).await;
    assert!(!second.is_leading());
    journal.check();
}
