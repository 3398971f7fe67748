//! Attacks of callers: on the connection to the member, which they share with the victim, and on
//! the hub's connection to the gateway, as far as its users can have it send them.

use kit::exposition;
use kit::frames::Wire;
use kit::hostile::{Expected, Outcome, Row, rows};
use parking_lot::Mutex;
use system_tests::prelude::*;

use super::{Fixture, LARGE, Victim};

/// Holds slow requests of the member until the row is over.
#[derive(Clone)]
struct Slow(Arc<Mutex<Gate>>);

// === impl Slow ===

impl Slow {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Gate::new())))
    }

    fn answers_at(&self, member: &FakeMember) {
        let slow = self.clone();
        member.on("/slow", move |_| Reply::full(200, &[], "late").after(&slow.0.lock()));
    }

    /// Answers those that wait.
    fn next_row(&self) {
        std::mem::replace(&mut *self.0.lock(), Gate::new()).open();
    }
}

/// The attacker's requests go over the victim's connection to the member.
async fn assert_shared(wire: &mut Wire, fixture: &Fixture, victim: &Victim, row: usize) {
    let target = format!("{}?row={row}", wire.places.quick);
    let stream = wire.request("GET", &target, &[], true).await;
    let seen = wire.outcome(stream).await;
    assert_eq!((seen.status, seen.text().as_str()), (Some(200), "of the member"));
    let query = format!("row={row}");
    let requests = fixture.member.requests();
    let recorded = requests.iter().rev().find(|request| request.query() == Some(&query)).expect("it was recorded");
    assert_eq!(recorded.connection, victim.connection, "the attacker has a connection of its own");
}

/// Whether this is the member's whole answer at one of the [`Places`](kit::frames::Places).
fn is_the_members(status: u16, text: &str) -> bool {
    let is_large = || text.len() == LARGE && text.bytes().all(|byte| byte == b'l');
    status == 200 && (matches!(text, "of the member" | "late") || is_large())
}

/// Returns the error, if any, and whether the attacker's connection was ended for its frames. One
/// that said goodbye itself ends in order.
async fn attacked(row: &Row, wire: &mut Wire) -> (Option<String>, bool) {
    let outcome: Outcome = within(3 * WAIT, row.name, (row.attack)(wire)).await;
    let is_ended = matches!(outcome, Outcome::Ended(_));
    if !outcome.is_one_of(row.expected, is_the_members) {
        let error = format!("{}: {outcome:?} instead of {:?}", row.name, row.expected);
        return (Some(error), is_ended);
    }
    let goes_on = is_ended || wire.answers_ping().await;
    let error = (!goes_on).then(|| format!("{}: {outcome:?}, and the connection ended: {wire:?}", row.name));
    (error, is_ended && *row.expected != [Expected::Dropped])
}

/// The connections that the gateway has counted as ended for their frames.
async fn counted(fixture: &Fixture) -> u64 {
    const SERIES: &str = "cluster_gateway_client_connections_ended_total{reason=\"frames\"}";
    let metrics = fixture.testbed.anonymous(Http::H2).await.bearer("victim").get("/metrics").await.text();
    exposition::value(&metrics, SERIES).unwrap_or_else(|| panic!("{SERIES} is not among\n{metrics}"))
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Victim and attacker have a connection each, and share the gateway's to the member.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_members_connection_no_attack_is_anybody_elses() {
    let fixture = Fixture::with(FakeHub::start().await, &[]).await;
    let slow = Slow::new();
    slow.answers_at(&fixture.member);
    let mut own = fixture.direct("victim").await;
    let mut victim = Victim::begin(&mut own, &fixture).await;
    let (mut wrong, mut ended) = (Vec::new(), 0);
    for (number, row) in rows().enumerate() {
        let token = format!("mallory-{number}");
        fixture.hub.add_token(&token, TokenUser::new(&token, &[]));
        let mut wire = fixture.direct(&token).await;
        assert_shared(&mut wire, &fixture, &victim, number).await;
        let (error, is_ended) = attacked(row, &mut wire).await;
        wrong.extend(error);
        victim.goes_on(&mut own, row.name).await;
        drop(wire);
        slow.next_row();
        // Each by itself, and no other row counts.
        ended += u64::from(is_ended);
        becomes(WAIT, format!("{} counts", row.name), async || counted(&fixture).await == ended).await;
    }
    assert_none(&wrong);
    assert!(ended > 10, "{ended} connections were ended");
}

/// All is on one connection of the hub's aggregator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_hubs_connection_no_attack_is_anybody_elses() {
    let fixture = Fixture::with(FakeHub::start().await, &[]).await;
    let slow = Slow::new();
    slow.answers_at(&fixture.member);
    let mut wire = fixture.shared("victim").await;
    let mut victim = Victim::begin(&mut wire, &fixture).await;
    let mut wrong = Vec::new();
    for (number, row) in rows().enumerate().filter(|(_, row)| row.by_hub) {
        wire.speak_for(&[("x-remote-user", &format!("mallory-{number}"))]);
        assert_shared(&mut wire, &fixture, &victim, number).await;
        wrong.extend(attacked(row, &mut wire).await.0);
        victim.goes_on(&mut wire, row.name).await;
        slow.next_row();
    }
    assert_none(&wrong);
}
