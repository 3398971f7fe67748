//! A crowd without credentials waits for itself, not users for it. So does one user without rights.

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::Auth;

const CROWD: usize = 5000;
/// Longer than a review without waiters continues.
const A_WHILE: Duration = Duration::from_secs(2);

fn anonymous() -> Arc<User> {
    Arc::new(User::anonymous())
}

/// A hub that allows everything, but never answers about anonymous users.
fn hub() -> (Arc<ScriptedHub>, Auth) {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    hub.hold(|user| user == "system:anonymous");
    let auth = auth(&hub);
    (hub, auth)
}

/// Each caller asks for something else, with `length` bytes.
fn crowd(auth: &Auth, length: usize) -> JoinSet<Result<Permission, AuthorizationError>> {
    let mut crowd = JoinSet::new();
    for number in 0..CROWD {
        let authorizer = Arc::clone(&auth.authorizer);
        crowd.spawn(async move { authorizer.authorize(anonymous(), path(&format!("/{number:0length$}"))).await });
    }
    crowd
}

#[tokio::test(start_paused = true)]
async fn users_are_reviewed_at_once_while_anonymous_requests_wait() {
    for length in [10, 12_000] {
        let (hub, auth) = hub();
        let _crowd = crowd(&auth, length);
        hub.seen_present(10).await;
        let start = Instant::now();
        for cluster in 0..200 {
            auth.authorizer.authorize(alice(), get(&format!("c{cluster}"))).await.expect("allowed");
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(hub.present(), 10, "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_crowd_is_turned_away_at_once_beyond_a_hundred() {
    for (length, most) in [(10, 100), (12_000, 50)] {
        let (hub, auth) = hub();
        let mut crowd = crowd(&auth, length);
        let start = Instant::now();
        for _ in most..CROWD {
            match crowd.join_next().await {
                Some(Ok(Err(error @ AuthorizationError::Busy(_)))) => {
                    assert_eq!(error.to_string(), "too many reviews are waiting for the hub");
                }
                other => panic!("{other:?}"),
            }
        }
        hub.seen_present(10).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!((crowd.len(), hub.access_attempts().len()), (most, 10));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_given_up_make_room_and_ask_nothing_any_more() {
    for length in [10, 12_000] {
        let (hub, auth) = hub();
        let mut crowd = crowd(&auth, length);
        hub.seen_present(10).await;
        crowd.shutdown().await;
        sleep(A_WHILE).await;
        assert_eq!((hub.present(), hub.access_attempts().len()), (0, 10), "those in the queue never came to the hub");
        hub.hold(|_| false);
        auth.authorizer.authorize(anonymous(), path("/other")).await.expect("there is room again");
    }
}

// Paused: what is kept for ten seconds would expire while a busy machine makes that many requests.
#[tokio::test(start_paused = true)]
async fn what_is_kept_of_users_is_not_pushed_out_by_anonymous_requests() {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    let auth = auth(&hub);
    auth.authorizer.authorize(alice(), get("c1")).await.expect("allowed");
    for number in 0..10_000 {
        auth.authorizer.authorize(anonymous(), path(&format!("/{number}"))).await.expect("allowed");
    }
    let asked = hub.access_attempts().len();
    auth.authorizer.authorize(alice(), get("c1")).await.expect("allowed");
    assert_eq!(hub.access_attempts().len(), asked);
}

#[tokio::test(start_paused = true)]
async fn anonymous_users_of_the_hubs_front_proxy_are_strangers_too() {
    let (hub, auth) = hub();
    let _crowd = crowd(&auth, 10);
    hub.seen_present(10).await;
    sleep(Duration::from_millis(1)).await;
    let proxied = Arc::new(User { uid: Some("1".to_owned()), ..User::anonymous() });
    let unproven = Arc::new(user("somebody", &["system:unauthenticated"]));
    for stranger in [proxied, unproven] {
        let outcome = auth.authorizer.authorize(stranger, path("/a")).await;
        assert!(matches!(outcome, Err(AuthorizationError::Busy(_))), "{outcome:?}");
    }
}

/// Accounts of one namespace, which count as one user.
fn mallory(number: usize) -> Arc<User> {
    Arc::new(user(&format!("system:serviceaccount:ci:mallory-{}", number % 3), &["system:serviceaccounts"]))
}

#[tokio::test(start_paused = true)]
async fn one_user_without_rights_waits_for_itself() {
    for (length, most) in [(10, 1024), (12_000, 512)] {
        let hub = ScriptedHub::new();
        hub.allow(|spec| spec.user.as_deref() == Some("alice"));
        hub.hold(|user| user != "alice");
        let auth = auth(&hub);
        let mut crowd = JoinSet::new();
        for number in 0..CROWD {
            let authorizer = Arc::clone(&auth.authorizer);
            let asked = path(&format!("/{number:0length$}"));
            crowd.spawn(async move { authorizer.authorize(mallory(number), asked).await });
        }
        let start = Instant::now();
        for _ in most..CROWD {
            match crowd.join_next().await {
                Some(Ok(Err(error @ AuthorizationError::Busy(_)))) => assert_eq!(
                    error.to_string(),
                    "too many reviews of all ServiceAccounts of namespace \"ci\" are waiting for the hub (limit 1024)"
                ),
                other => panic!("{other:?}"),
            }
        }
        hub.seen_present(25).await;
        for cluster in 0..200 {
            auth.authorizer.authorize(alice(), get(&format!("c{cluster}"))).await.expect("allowed");
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!((crowd.len(), hub.present()), (most, 25), "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_users_is_not_pushed_out_by_one_without_rights() {
    let hub = ScriptedHub::new();
    hub.allow(|spec| spec.user.as_deref() == Some("alice"));
    let auth = auth(&hub);
    auth.authorizer.authorize(alice(), get("c1")).await.expect("allowed");
    for number in 0..12_000 {
        auth.authorizer.authorize(mallory(number), path(&format!("/{number:09900}"))).await.expect_err("denied");
    }
    let asked = hub.access_attempts().len();
    auth.authorizer.authorize(alice(), get("c1")).await.expect("allowed");
    assert_eq!(hub.access_attempts().len(), asked);
}
