//! Made-up tokens wait for each other; tokens that were good do not wait for them, nor for those of
//! one user.

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::review::TooManyReviews;

/// More than may wait.
const CROWD: usize = 5000;

/// A hub that knows one good token, and never answers about tokens that begin with `junk`.
fn hub() -> (Arc<ScriptedHub>, Arc<Auth>) {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("u", &[]));
    hub.hold(|token| token.starts_with("junk"));
    let auth = Arc::new(auth(&hub));
    (hub, auth)
}

fn crowd(auth: &Arc<Auth>) -> JoinSet<Opinion> {
    let mut crowd = JoinSet::new();
    for number in 0..CROWD {
        let auth = Arc::clone(auth);
        crowd.spawn(async move { ask(&auth, &format!("junk{number}")).await });
    }
    crowd
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_good_is_reviewed_at_once_while_made_up_ones_wait() {
    let (hub, auth) = hub();
    assert!(is_user(&ask(&auth, "good").await));
    advance(Duration::from_secs(9)).await;
    let _crowd = crowd(&auth);
    hub.seen_present(50).await;
    let start = Instant::now();
    assert!(is_user(&ask(&auth, "good").await), "kept");
    assert_eq!(start.elapsed(), Duration::ZERO);
    advance(Duration::from_secs(1)).await;
    let (start, asked) = (Instant::now(), hub.token_attempts());
    assert!(is_user(&ask(&auth, "good").await), "asked again");
    assert_eq!((start.elapsed(), hub.token_attempts(), hub.present()), (Duration::ZERO, asked + 1, 50));
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_beyond_the_limit_are_turned_away_at_once() {
    let (hub, auth) = hub();
    let mut crowd = crowd(&auth);
    let start = Instant::now();
    for _ in 1024..CROWD {
        let busy = Opinion::Failed(ReviewError::Busy(TooManyReviews::OfAll));
        assert_eq!(crowd.join_next().await.expect("one is left").expect("no panic"), busy);
    }
    hub.seen_present(50).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!((crowd.len(), hub.token_attempts()), (1024, 50));

    crowd.shutdown().await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!((hub.present(), hub.token_attempts()), (0, 50), "those in the queue never came to the hub");
    assert!(is_user(&ask(&auth, "good").await), "there is room again");
}

#[tokio::test]
async fn what_is_kept_of_users_is_not_pushed_out_by_refusals() {
    let (hub, auth) = hub();
    assert!(is_user(&ask(&auth, "good").await));
    for number in 0..10_000 {
        assert_eq!(ask(&auth, &format!("bad{number}")).await, refused());
    }
    let asked = hub.token_attempts();
    assert!(is_user(&ask(&auth, "good").await));
    assert_eq!(hub.token_attempts(), asked);
}

/// Whoever may create ServiceAccounts or their tokens has as many as it likes, and all are good.
#[tokio::test(start_paused = true)]
async fn tokens_of_one_user_wait_for_each_other_and_push_out_their_own() {
    const TOKENS: usize = 20_000;
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("u", &[]));
    for number in 0..TOKENS {
        let name = format!("system:serviceaccount:ci:mallory-{number}");
        hub.token(&format!("mallory{number}"), authenticated(&name, &[]));
    }
    let auth = Arc::new(auth(&hub));
    assert!(is_user(&ask(&auth, "good").await));
    for number in 0..TOKENS {
        assert!(is_user(&ask(&auth, &format!("mallory{number}")).await));
    }
    let asked = hub.token_attempts();
    assert!(is_user(&ask(&auth, "good").await));
    assert_eq!(hub.token_attempts(), asked, "kept");

    advance(Duration::from_secs(10)).await;
    hub.hold(|token| token.starts_with("mallory"));
    let mut crowd = JoinSet::new();
    // The latest: they are known to be good.
    for number in TOKENS - 4096..TOKENS {
        let auth = Arc::clone(&auth);
        crowd.spawn(async move { ask(&auth, &format!("mallory{number}")).await });
    }
    let owner = Arc::from("system:serviceaccount:ci:");
    let busy = Opinion::Failed(ReviewError::Busy(TooManyReviews::OfOne { owner, most: 1024 }));
    for _ in 1024..4096 {
        assert_eq!(crowd.join_next().await.expect("one is left").expect("no panic"), busy);
    }
    hub.seen_present(25).await;
    let start = Instant::now();
    assert!(is_user(&ask(&auth, "good").await), "asked again, among the users");
    assert_eq!((start.elapsed(), crowd.len(), hub.present()), (Duration::ZERO, 1024, 25));
}
