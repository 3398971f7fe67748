//! One owner waits for itself, and pushes out its own answers.

use super::*;

const LIMITS: Limits = Limits { kept: 100, pending: 40 };
const OF_ONE: Limits = Limits { kept: 25, pending: 10 };

fn shared() -> Arc<Cache<u32, String>> {
    Arc::new(Cache::weighing(Handle::current(), LIMITS, OF_ONE, |_, text| text.len()))
}

fn owner(name: &str) -> Arc<str> {
    name.into()
}

async fn load_for(cache: &Cache<u32, String>, name: &str, key: u32, text: &str) -> Result<String, ReviewError> {
    let loaded = Ok(kept(text));
    cache.get_or_load_for(Some(owner(name)), Arc::new(key), None, |_| async { loaded }).await
}

fn is_kept(cache: &Cache<u32, String>, keys: impl Iterator<Item = u32>) -> Vec<u32> {
    keys.filter(|key| cache.get(key).is_some()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_owner_beyond_its_share_loses_its_oldest_answers_and_no_other_does() {
    let cache = shared();
    load_for(&cache, "alice", 0, "other").await.expect("loaded");
    for key in 1..=100 {
        load_for(&cache, "mallory", key, "light").await.expect("loaded");
    }
    cache.put(200, "mallory".into(), "known".to_owned(), LIFETIME);
    assert_eq!(is_kept(&cache, 0..=200), [0, 97, 98, 99, 100, 200]);
    assert_eq!(cache.entries.lock().weight, 30);
    load_for(&cache, "mallory", 201, &"heavy".repeat(6)).await.expect("told, and not kept");
    assert_eq!(is_kept(&cache, 0..=201), [0]);
    // All together have no more than before.
    for key in 300..330 {
        load_for(&cache, &format!("user {}", key / 5), key, "light").await.expect("loaded");
    }
    assert_eq!(is_kept(&cache, 0..=330), (310..330).collect::<Vec<_>>());
    advance(LIFETIME).await;
    for key in 400..410 {
        load(&cache, key, Ok(kept("new"))).await.expect("loaded");
    }
    let entries = cache.entries.lock();
    assert_eq!((entries.order.len(), entries.weight), (10, 30));
    assert!(entries.owners.is_empty(), "whoever has nothing is forgotten");
}

#[tokio::test]
async fn an_owner_beyond_its_share_is_turned_away_and_others_are_not() {
    let cache = shared();
    let call = |name: &str, key| {
        let (owner, cache) = (Some(owner(name)), &cache);
        Box::pin(cache.get_or_load_for(owner, Arc::new(key), None, |_| std::future::pending()))
    };
    let alone = |name: &str, weight| Box::pin(cache.load_alone(Some(owner(name)), weight, |_| std::future::pending()));
    let too_many =
        |name: &str| Some(Err(ReviewError::Busy(TooManyReviews::OfOne { owner: name.into(), most: OF_ONE.pending })));
    let mut calls: Vec<_> = (0..9).map(|key| call("mallory", key)).collect();
    for call in &mut calls {
        assert_eq!(call.now_or_never(), None);
    }
    let mut long = alone("mallory", 7);
    assert_eq!((&mut long).now_or_never(), None, "there was room before it came");
    assert_eq!(call("mallory", 10).now_or_never(), too_many("mallory"));
    assert_eq!(alone("mallory", 1).now_or_never(), too_many("mallory"));
    assert_eq!(call("mallory", 3).now_or_never(), None, "what is asked already is nothing more");
    assert_eq!(load_for(&cache, "alice", 11, "at once").await, Ok("at once".to_owned()));
    let mut others = [alone("eve", 9), alone("bob", 9), alone("carol", 9)];
    for call in &mut others {
        assert_eq!(call.now_or_never(), None);
    }
    assert_eq!(load_for(&cache, "alice", 12, "late").await, busy(), "now it is all of them");
    drop((calls, long, others));
    all_clear(&cache).await;
    assert_eq!(load_for(&cache, "mallory", 13, "again").await, Ok("again".to_owned()));
}
