use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The behaviour of an address.
#[derive(Clone, Copy)]
enum Does {
    Answer,
    Refuse,
    /// After this many milliseconds.
    RefuseLate(u64),
    Nothing,
}

/// How a race ended, and when.
struct Ended {
    outcome: Result<SocketAddr, Vec<Tried>>,
    after: Duration,
    /// Attempts that were neither abandoned nor finished.
    left: usize,
}

/// Counts itself while it lives.
struct Attempt(Arc<AtomicUsize>);

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn address(turn: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, u8::try_from(turn).unwrap()], 6443))
}

/// Races addresses with this behaviour, with a deadline in 10 s.
async fn race(script: &[Does]) -> Ended {
    let (started, alive) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let attempt = |at: SocketAddr| {
        let turn = (0..script.len()).find(|turn| address(*turn) == at).unwrap();
        alive.fetch_add(1, Ordering::Relaxed);
        let (counted, does) = (Attempt(Arc::clone(&alive)), script[turn]);
        async move {
            let _counted = counted;
            match does {
                Does::Answer => return Ok(at),
                Does::Refuse => {}
                Does::RefuseLate(millis) => sleep(Duration::from_millis(millis)).await,
                Does::Nothing => std::future::pending().await,
            }
            Err(io::ErrorKind::ConnectionRefused.into())
        }
    };
    let addresses = (0..script.len()).map(address).collect();
    let outcome = first_of(addresses, started + Duration::from_secs(10), attempt).await;
    Ended { outcome, after: started.elapsed(), left: alive.load(Ordering::Relaxed) }
}

#[tokio::test(start_paused = true)]
async fn a_silent_address_costs_a_quarter_of_a_second_and_is_given_up_when_another_answers() {
    let ended = race(&[Does::Nothing, Does::Answer]).await;
    assert_eq!(ended.outcome.ok(), Some(address(1)));
    assert!(ended.after < Duration::from_millis(300), "{:?}", ended.after);
    assert_eq!(ended.left, 0, "an attempt goes on");
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_the_next_address_is_tried_at_once() {
    let ended = race(&[Does::Refuse, Does::Refuse, Does::Answer]).await;
    assert_eq!(ended.outcome.ok(), Some(address(2)));
    assert_eq!(ended.after, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_answers_is_the_only_one_tried() {
    let ended = race(&[Does::Answer, Does::Nothing]).await;
    assert_eq!((ended.outcome.ok(), ended.after, ended.left), (Some(address(0)), Duration::ZERO, 0));
}

#[tokio::test(start_paused = true)]
async fn silence_lasts_until_the_deadline_and_not_longer() {
    let ended = race(&[Does::Nothing, Does::Refuse, Does::Nothing]).await;
    let tried = ended.outcome.unwrap_err();
    assert_eq!(tried.iter().map(|tried| tried.failure.is_some()).collect::<Vec<_>>(), [false, true, false]);
    assert!((10_000..10_100).contains(&ended.after.as_millis()), "{:?}", ended.after);
    assert_eq!(ended.left, 0, "an attempt goes on");
}

#[tokio::test(start_paused = true)]
async fn all_refuse_and_the_order_is_that_of_the_addresses() {
    let ended = race(&[Does::RefuseLate(400), Does::Refuse]).await;
    let tried = ended.outcome.unwrap_err();
    assert_eq!(tried.iter().map(|tried| tried.address).collect::<Vec<_>>(), [address(0), address(1)]);
    assert!(tried.iter().all(|tried| tried.failure.is_some()));
    assert!((400..500).contains(&ended.after.as_millis()), "{:?}", ended.after);
}

#[test]
fn families_take_turns() {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let given = ["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1", "2.2.2.2:1"].map(address);
    let turns = in_turns(given);
    assert_eq!(turns, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(address));
}

#[test]
fn many_addresses_of_one_family_keep_none_of_the_other_out() {
    let v6 = (1..=100).map(|n| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, n], 1)));
    let turns = in_turns(v6.chain([address(1)]));
    assert_eq!((turns.len(), turns[1]), (MOST_ADDRESSES, address(1)));
}
