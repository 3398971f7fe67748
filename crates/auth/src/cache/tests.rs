//! One call for many callers, kept for its time and not longer, within bounds.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::time::advance;

use super::*;
use crate::review::Retry;

const LIFETIME: Duration = Duration::from_secs(10);

fn cache() -> Arc<Cache<u32, String>> {
    Arc::new(Cache::new(Handle::current()))
}

fn kept(text: &str) -> (String, Duration) {
    (text.to_owned(), LIFETIME)
}

fn failure() -> ReviewError {
    ReviewError::Hub { message: Arc::from("down"), retry: Retry::Never }
}

async fn load(cache: &Cache<u32, String>, key: u32, loaded: Loaded<String>) -> Result<String, ReviewError> {
    cache.get_or_load(Arc::new(key), || async { loaded }).await
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
                let load = || async move {
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
            let load = || async move {
                started.send(()).expect("the test waits");
                gate.await.expect("the gate opens");
                Ok(kept("shared"))
            };
            cache.get_or_load(Arc::new(7), load).await
        }
    });
    start.await.expect("the call starts");
    first.abort();
    first.await.expect_err("cancelled");
    let second = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { load(&cache, 7, Err(failure())).await }
    });
    tokio::task::yield_now().await;
    go.send(()).expect("the call survived its caller");
    assert_eq!(second.await.expect("no panic"), Ok("shared".to_owned()));
}

#[tokio::test]
async fn a_call_that_panics_is_lost_and_leaves_nothing_behind() {
    let cache = cache();
    let lost = cache.get_or_load(Arc::new(1), || async { panic!("a bug in the call") }).await;
    assert_eq!(lost, Err(ReviewError::Lost));
    assert_eq!(load(&cache, 1, Ok(kept("works again"))).await, Ok("works again".to_owned()));
    assert_eq!(cache.entries.lock().pending, 0);
}

#[test]
fn a_runtime_that_is_gone_loses_calls_without_hanging() {
    let owner = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let cache = Cache::<u32, String>::new(owner.handle().clone());
    drop(owner);
    let caller = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(caller.block_on(load(&cache, 1, Ok(kept("never")))), Err(ReviewError::Lost));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_entries_leave_a_full_cache() {
    let cache = cache();
    let more = 10;
    for key in 0..u32::try_from(CAPACITY + more).expect("fits") {
        load(&cache, key, Ok(kept("kept"))).await.expect("loaded");
    }
    assert_eq!(cache.entries.lock().slots.len(), CAPACITY);
    assert_eq!(cache.get(&9), None);
    assert!(cache.get(&10).is_some());
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

#[tokio::test]
async fn calls_beyond_the_limit_are_turned_away_and_the_others_go_on() {
    let cache = cache();
    for key in 0..u32::try_from(MAX_PENDING).expect("fits") {
        let caller = cache.get_or_load(Arc::new(key), std::future::pending);
        assert_eq!(caller.now_or_never(), None, "the call of key {key} is under way");
    }
    assert_eq!(load(&cache, u32::MAX, Ok(kept("late"))).await, Err(ReviewError::Busy));
    assert_eq!(cache.entries.lock().pending, MAX_PENDING);
}
