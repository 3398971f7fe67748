//! Several contenders on a hub that delays, loses and refuses what it likes: never two lead, and one
//! does when it is well again.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["first", "second", "third"];

/// Milliseconds of one way: mostly few, now and then more than anybody waits.
fn way() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 0..100u64, 3 => 100..4000u64, 2 => 4000..12_000u64]
}

fn fate() -> impl Strategy<Value = Fate> {
    let outcome = prop_oneof![
        12 => Just(Outcome::Answered),
        1 => Just(Outcome::Failed(500)),
        1 => Just(Outcome::Failed(409)),
        1 => Just(Outcome::Unheard),
    ];
    (way(), way(), outcome).prop_map(|(there, back, outcome)| {
        let [there, back] = [there, back].map(Duration::from_millis);
        Fate { there, back, outcome }
    })
}

/// What happens to one of them, some milliseconds after what happened before.
#[derive(Clone, Copy, Debug)]
enum Event {
    Kill(usize),
    Stop(usize),
}

fn event() -> impl Strategy<Value = (u64, Event)> {
    let who = 0..NAMES.len();
    (0..40_000u64, prop_oneof![who.clone().prop_map(Event::Kill), who.prop_map(Event::Stop)])
}

async fn play(fates: Vec<Fate>, events: Vec<(u64, Event)>) {
    let (hub, journal) = (Hub::new(), Journal::default());
    let mut fates = fates.into_iter().cycle();
    hub.script(move |_| fates.next().unwrap_or_default());
    let mut contenders = NAMES.map(|who| Some(Contender::start(&hub, who, &journal)));
    for (pause, event) in events {
        sleep(Duration::from_millis(pause)).await;
        let (Event::Kill(who) | Event::Stop(who)) = event;
        let one = contenders[who].take().expect("it contends");
        match event {
            Event::Kill(_) => one.kill().await,
            Event::Stop(_) => one.stop().await,
        }
        contenders[who] = Some(Contender::start(&hub, NAMES[who], &journal));
        journal.check();
    }
    sleep(60 * SECOND).await;
    journal.check();
    hub.script(|_| Fate::default());
    sleep(60 * SECOND).await;
    journal.check();
    let leaders = contenders.iter().flatten().filter(|contender| contender.is_leading()).count();
    assert_eq!(leaders, 1, "of a hub that is well");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_never_lead_together(fates in vec(fate(), 1..60), events in vec(event(), 0..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(play(fates, events));
    }
}
