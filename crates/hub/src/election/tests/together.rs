//! Several contenders on a hub that delays, loses and refuses calls at random: two never lead at
//! the same time, and one leads when the hub is healthy again.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["first", "second", "third"];

/// The delay in one direction in milliseconds: mostly short, sometimes longer than any time limit.
fn way() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 0..100u64, 3 => 100..4000u64, 2 => 4000..12_000u64]
}

/// The fate of all calls of one contender for a number of milliseconds.
fn weather() -> impl Strategy<Value = (u64, Fate)> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Answered),
        1 => Just(Outcome::Failed(500)),
        1 => Just(Outcome::Failed(409)),
        1 => Just(Outcome::Unheard),
    ];
    (0..25_000u64, way(), way(), outcome).prop_map(|(lasting, there, back, outcome)| {
        let [there, back] = [there, back].map(Duration::from_millis);
        (lasting, Fate { there, back, outcome })
    })
}

/// Repeats the sequence forever.
fn fate_at(weather: &[(u64, Fate)], elapsed: Duration) -> Fate {
    let whole: u64 = weather.iter().map(|(lasting, _)| lasting).sum();
    let mut rest = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX) % whole.max(1);
    for (lasting, fate) in weather {
        match rest.checked_sub(*lasting) {
            Some(later) => rest = later,
            None => return *fate,
        }
    }
    Fate::default()
}

/// What happens to a contender, some milliseconds after the previous event.
#[derive(Clone, Copy, Debug)]
enum Event {
    Kill(usize),
    Stop(usize),
}

fn event() -> impl Strategy<Value = (u64, Event)> {
    let who = 0..NAMES.len();
    (0..40_000u64, prop_oneof![who.clone().prop_map(Event::Kill), who.prop_map(Event::Stop)])
}

async fn play(weather: [Vec<(u64, Fate)>; 3], events: Vec<(u64, Event)>) {
    let (hub, journal, start) = (Hub::new(), Journal::default(), Instant::now());
    hub.script(move |call| {
        let who = NAMES.iter().position(|name| *name == call.who).expect("a contender");
        fate_at(&weather[who], start.elapsed())
    });
    let mut contenders = NAMES.map(|who| Some(Contender::start(&hub, who, &journal)));
    for (number, (pause, event)) in events.into_iter().enumerate() {
        sleep(Duration::from_millis(pause)).await;
        let (Event::Kill(who) | Event::Stop(who)) = event;
        let one = contenders[who].take().expect("it contends");
        match event {
            Event::Kill(_) => one.kill().await,
            Event::Stop(_) => one.stop().await,
        }
        // A new name each time, as for each process: calls of the previous one may be in flight.
        let name = format!("{}-{number}", NAMES[who]);
        contenders[who] = Some(Contender::start_as(&hub, NAMES[who], &name, &journal));
        journal.check();
    }
    sleep(200 * SECOND).await;
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
    fn two_never_lead_together(weather in [(); 3].map(|()| vec(weather(), 1..8)), events in vec(event(), 0..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(play(weather, events));
    }
}
