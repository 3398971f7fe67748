//! Tests: one call serves many callers, and its result is cached for its lifetime, within bounds.

mod shares;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::time::advance;

use super::entries::Slot;
use super::*;
use crate::review::{Retry, TooManyReviews};

const LIFETIME: Duration = Duration::from_secs(10);
const USERS: Limits = Limits::of_users(16_384);

fn cache() -> Arc<Cache<u32, String>> {
    Arc::new(Cache::new(Handle::current(), USERS))
}

fn kept(text: &str) -> (String, Duration) {
    (text.to_owned(), LIFETIME)
}

/// There are too many, whoever asks.
fn busy() -> Result<String, ReviewError> {
    Err(ReviewError::Busy(TooManyReviews::OfAll))
}

fn failure() -> ReviewError {
    ReviewError::Hub { message: Arc::from("down"), retry: Retry::Never }
}

async fn load(cache: &Cache<u32, String>, key: u32, loaded: Loaded<String>) -> Result<String, ReviewError> {
    cache.get_or_load(Arc::new(key), |_| async { loaded }).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_for_its_lifetime() {
    let cache = cache();
    assert_eq!(load(&cache, 1, Ok(kept("first"))).await, Ok("first".to_owned()));
    advance(LIFETIME.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(load(&cache, 1, Ok(kept("second"))).await, Ok("first".to_owned()));
    advance(Duration::from_millis(1)).await;
    assert_eq!(cache.get(&1), None);
    assert_eq!(load(&cache, 1, Ok(kept("second"))).await, Ok("second".to_owned()));
}

/// Neither a cached value nor a call in flight, and a late result of that call hides nothing newer.
#[tokio::test(start_paused = true)]
async fn what_was_asked_for_before_something_changed_does_not_count() {
    let cache = cache();
    let since = async |since: Instant, text: &'static str| {
        cache.get_or_load_for(None, Arc::new(1), Some(since), |_| async move { Ok(kept(text)) }).await
    };
    assert_eq!(load(&cache, 1, Ok(kept("before"))).await, Ok("before".to_owned()));
    assert_eq!(since(Instant::now(), "same moment").await, Ok("before".to_owned()));
    advance(Duration::from_secs(1)).await;
    let changed = Instant::now();
    assert_eq!(since(changed, "after").await, Ok("after".to_owned()));
    assert_eq!(since(changed, "again").await, Ok("after".to_owned()), "asked once");
    advance(LIFETIME).await;
    let (go, gate) = oneshot::channel::<()>();
    let slow = |_| async move {
        let _ = gate.await;
        Ok(kept("slow"))
    };
    let slow = cache.get_or_load(Arc::new(1), slow);
    let fresh = async {
        advance(Duration::from_secs(1)).await;
        let changed = Instant::now();
        assert_eq!(since(changed, "fresh").await, Ok("fresh".to_owned()), "not the call under way");
        go.send(()).unwrap();
        changed
    };
    let (landed, changed) = tokio::join!(slow, fresh);
    assert_eq!(landed, Ok("slow".to_owned()));
    assert_eq!(since(changed, "once more").await, Ok("once more".to_owned()), "not what landed late");
}

#[tokio::test(start_paused = true)]
async fn failures_and_answers_without_a_lifetime_are_not_kept() {
    let cache = cache();
    assert_eq!(load(&cache, 1, Err(failure())).await, Err(failure()));
    assert_eq!(load(&cache, 1, Ok(("brief".to_owned(), Duration::ZERO))).await, Ok("brief".to_owned()));
    assert_eq!(load(&cache, 1, Ok(kept("kept"))).await, Ok("kept".to_owned()));
}

#[tokio::test]
async fn a_hundred_callers_share_one_call() {
    let cache = cache();
    let calls = Arc::new(AtomicUsize::new(0));
    let (go, gate) = oneshot::channel::<()>();
    let mut gate = Some(gate);
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let (cache, calls, gate) = (Arc::clone(&cache), Arc::clone(&calls), gate.take());
            tokio::spawn(async move {
                let load = |_| async move {
                    calls.fetch_add(1, Ordering::SeqCst);
                    gate.expect("only the first caller calls").await.expect("the gate opens");
                    Ok(kept("shared"))
                };
                cache.get_or_load(Arc::new(7), load).await
            })
        })
        .collect();
    tokio::task::yield_now().await;
    go.send(()).expect("the call is under way");
    for caller in callers {
        assert_eq!(caller.await.expect("no panic"), Ok("shared".to_owned()));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_take_the_call_with_it() {
    let cache = cache();
    let (go, gate) = oneshot::channel::<()>();
    let (started, start) = oneshot::channel();
    let first = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move {
            let load = |_| async move {
                started.send(()).expect("the test waits");
                gate.await.expect("the gate opens");
                Ok(kept("shared"))
            };
            cache.get_or_load(Arc::new(7), load).await
        }
    });
    start.await.expect("the call starts");
    let second = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { load(&cache, 7, Err(failure())).await }
    });
    tokio::task::yield_now().await;
    first.abort();
    first.await.expect_err("cancelled");
    tokio::task::yield_now().await;
    go.send(()).expect("the call survived its caller");
    assert_eq!(second.await.expect("no panic"), Ok("shared".to_owned()));
}

#[tokio::test]
async fn a_call_that_panics_is_lost_and_leaves_nothing_behind() {
    let cache = cache();
    let lost = cache.get_or_load(Arc::new(1), |_| async { panic!("a bug in the call") }).await;
    assert_eq!(lost, Err(ReviewError::Lost));
    assert_eq!(load(&cache, 1, Ok(kept("works again"))).await, Ok("works again".to_owned()));
    assert_eq!(cache.entries.lock().pending, 0);
}

#[test]
fn a_runtime_that_is_gone_loses_calls_without_hanging() {
    let owner = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let cache = Cache::<u32, String>::new(owner.handle().clone(), USERS);
    drop(owner);
    let caller = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(caller.block_on(load(&cache, 1, Ok(kept("never")))), Err(ReviewError::Lost));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_entries_leave_a_full_cache() {
    let cache = cache();
    let more = 10;
    for key in 0..u32::try_from(USERS.kept + more).expect("fits") {
        load(&cache, key, Ok(kept("kept"))).await.expect("loaded");
    }
    assert_eq!(cache.entries.lock().slots.len(), USERS.kept);
    assert_eq!(cache.get(&9), None);
    assert!(cache.get(&10).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_heavy_answer_pushes_out_as_many_light_ones_as_it_weighs() {
    let limits = Limits { kept: 100, ..USERS };
    let cache = Cache::<u32, String>::weighing(Handle::current(), limits, Limits::NONE, |_, text| text.len());
    for key in 0..20 {
        load(&cache, key, Ok(kept("light"))).await.expect("loaded");
    }
    load(&cache, 20, Ok(kept(&"heavy".repeat(10)))).await.expect("loaded");
    assert_eq!((0..=20).find(|key| cache.get(key).is_some()), Some(10));
    assert_eq!(cache.entries.lock().weight, limits.kept);
    load(&cache, 21, Ok(kept(&"too much".repeat(100)))).await.expect("told, and not kept");
    let entries = cache.entries.lock();
    assert_eq!((entries.slots.len(), entries.order.len(), entries.weight), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn expired_entries_make_room_before_the_cache_is_full() {
    let cache = cache();
    for key in 0..100 {
        load(&cache, key, Ok(kept("old"))).await.expect("loaded");
    }
    advance(LIFETIME).await;
    for key in 100..130 {
        load(&cache, key, Ok(kept("new"))).await.expect("loaded");
    }
    let entries = cache.entries.lock();
    assert_eq!((entries.slots.len(), entries.order.len()), (30, 30));
}

/// Nobody comes any more who would push them out.
#[tokio::test(start_paused = true)]
async fn answers_of_a_burst_leave_soon_after_they_expired() {
    let cache = cache();
    for burst in 0..2 {
        for key in 0..1000 {
            load(&cache, key, Ok(kept("old"))).await.expect("loaded");
            cache.put(1000 + key, "owner".into(), "old".to_owned(), LIFETIME);
        }
        tokio::time::sleep(LIFETIME.saturating_sub(Duration::from_secs(1))).await;
        assert_eq!(cache.entries.lock().slots.len(), 2000, "burst {burst}");
        tokio::time::sleep(sweep::PAUSE).await;
        let entries = cache.entries.lock();
        assert_eq!((entries.slots.len(), entries.order.len(), entries.weight), (0, 0, 0), "burst {burst}");
        assert!(entries.owners.is_empty() && !entries.is_swept, "burst {burst}");
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_are_turned_away_and_the_others_go_on() {
    let cache = cache();
    let mut callers: Vec<_> = (0..USERS.pending)
        .map(|key| {
            let key = Arc::new(u32::try_from(key).expect("fits"));
            Box::pin(cache.get_or_load(key, |_| std::future::pending()))
        })
        .collect();
    for caller in &mut callers {
        assert_eq!(caller.now_or_never(), None, "the call is under way");
    }
    tokio::task::yield_now().await;
    assert_eq!(load(&cache, u32::MAX, Ok(kept("late"))).await, busy());
    let alone = cache.load_alone(None, 1, |_| async { Ok(kept("late")) });
    assert_eq!(alone.await, busy());
    assert_eq!(cache.entries.lock().pending, USERS.pending);
    drop(callers);
    all_clear(&cache).await;
    assert_eq!(load(&cache, u32::MAX, Ok(kept("late"))).await, Ok("late".to_owned()));
}

#[tokio::test]
async fn calls_for_one_caller_count_by_their_weight() {
    let cache = Arc::new(Cache::<u32, String>::new(Handle::current(), Limits { kept: 1, pending: 10 }));
    let alone = |weight| Box::pin(cache.load_alone(None, weight, |_| std::future::pending()));
    let mut callers = [alone(4), alone(5), alone(100)];
    for caller in &mut callers {
        assert_eq!(caller.now_or_never(), None, "there was room before it came");
    }
    assert_eq!(load(&cache, 1, Ok(kept("late"))).await, busy());
    drop(callers);
    all_clear(&cache).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_turn_ends_with_its_last_caller() {
    let cache = cache();
    let (turn, gone) = oneshot::channel::<()>();
    let mut turn = Some(turn);
    let mut callers: Vec<_> = (0..3)
        .map(|_| {
            let turn = turn.take();
            let load = move |_| async move {
                let _turn = turn;
                std::future::pending().await
            };
            Box::pin(cache.get_or_load(Arc::new(7), load))
        })
        .collect();
    for caller in &mut callers {
        assert_eq!(caller.now_or_never(), None);
    }
    callers.truncate(1);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(cache.entries.lock().pending, 1, "somebody still waits");
    let start = Instant::now();
    callers.clear();
    ended(gone).await;
    all_clear(&cache).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(load(&cache, 7, Ok(kept("anew"))).await, Ok("anew".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_call_at_the_hub_ends_a_moment_after_its_last_caller() {
    for alone in [true, false] {
        let cache = cache();
        let (begun, begin) = oneshot::channel();
        let (there, gone) = oneshot::channel::<()>();
        let load = move |progress: ReviewProgress| async move {
            let _there = there;
            let _at_hub = progress.enter_hub();
            begun.send(()).expect("the test waits");
            std::future::pending().await
        };
        let caller = tokio::spawn({
            let cache = Arc::clone(&cache);
            async move {
                if alone { cache.load_alone(None, 1, load).await } else { cache.get_or_load(Arc::new(7), load).await }
            }
        });
        begin.await.expect("the call begins");
        let start = Instant::now();
        caller.abort();
        ended(gone).await;
        let took = start.elapsed();
        assert!(took.abs_diff(flight::ABANDONED_GRACE) < Duration::from_millis(10), "alone: {alone}, {took:?}");
        all_clear(&cache).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_joins_a_call_that_was_left_gets_its_answer() {
    let cache = cache();
    let (begun, begin) = oneshot::channel();
    let load_slowly = move |progress: ReviewProgress| async move {
        let _at_hub = progress.enter_hub();
        begun.send(()).expect("the test waits");
        tokio::time::sleep(flight::ABANDONED_GRACE * 3).await;
        Ok(kept("shared"))
    };
    let first = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { cache.get_or_load(Arc::new(7), load_slowly).await }
    });
    begin.await.expect("the call begins");
    first.abort();
    first.await.expect_err("cancelled");
    tokio::time::sleep(flight::ABANDONED_GRACE / 2).await;
    assert_eq!(load(&cache, 7, Err(failure())).await, Ok("shared".to_owned()));
}

#[tokio::test]
async fn a_call_whose_caller_has_gone_before_it_began_never_begins() {
    let cache = cache();
    let never = |_: ReviewProgress| async { panic!("nobody wants this") };
    assert_eq!(cache.load_alone(None, 1, never).now_or_never(), None);
    assert_eq!(cache.get_or_load(Arc::new(1), never).now_or_never(), None);
    all_clear(&cache).await;
}

/// Waits until the call with the other end is dropped.
async fn ended(gone: oneshot::Receiver<()>) {
    let outcome = tokio::time::timeout(Duration::from_mins(1), gone).await;
    outcome.expect("the call ends").expect_err("dropped");
}

/// Waits until no call is in flight: a few turns of the runtime, without any time passing.
async fn all_clear(cache: &Cache<u32, String>) {
    for _ in 0..100 {
        if cache.entries.lock().pending == 0 {
            assert!(!cache.entries.lock().slots.values().any(|slot| matches!(slot, Slot::Pending { .. })));
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} calls left", cache.entries.lock().pending);
}
