//! Tests of which failures are retried, how long that may take, and what is sent.

use std::collections::VecDeque;

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::permits::{MAX_ANONYMOUS, MAX_NEW_TOKENS, MAX_OF_ONE, MAX_OUTSTANDING};
use super::*;
use crate::testing::https::{self, HttpsHub};
use crate::testing::{ScriptedHub, authenticated, metrics};

fn reviewer(hub: &Arc<ScriptedHub>) -> Reviewer {
    Reviewer::new(Arc::<ScriptedHub>::clone(hub), metrics())
}

fn failure(retry: Retry) -> ReviewError {
    ReviewError::Hub { message: Arc::from("down"), retry }
}

/// The line of one user of many.
fn users(number: usize) -> QueueKey {
    QueueKey::Users(format!("user {number}").into())
}

fn spec() -> TokenReviewSpec {
    TokenReviewSpec { token: Some("t".to_owned()), audiences: None }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_tried_again_five_times_in_all() {
    let hub = ScriptedHub::new();
    hub.token("t", authenticated("u", &[]));
    hub.fail_next([failure(Retry::Backoff), failure(Retry::After(Duration::from_secs(2)))]);
    let start = Instant::now();
    reviewer(&hub).token(users(0), &ReviewProgress::default(), spec).await.expect("the third attempt works");
    assert_eq!(hub.token_attempts(), 3);
    let waited = start.elapsed().as_secs_f64();
    assert!((2.5..2.7).contains(&waited), "{waited}");

    hub.fail_next(std::iter::repeat_n(failure(Retry::Backoff), 5));
    assert_eq!(reviewer(&hub).token(users(0), &ReviewProgress::default(), spec).await, Err(failure(Retry::Backoff)));
    assert_eq!(hub.token_attempts(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_will_not_pass_is_final() {
    let hub = ScriptedHub::new();
    hub.fail_next([failure(Retry::Never)]);
    assert_eq!(reviewer(&hub).token(users(0), &ReviewProgress::default(), spec).await, Err(failure(Retry::Never)));
    assert_eq!(hub.token_attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_hub_is_given_up() {
    let hub = ScriptedHub::new();
    hub.close();
    let start = Instant::now();
    assert_eq!(reviewer(&hub).token(users(0), &ReviewProgress::default(), spec).await, Err(ReviewError::TimedOut));
    assert_eq!(start.elapsed(), ATTEMPT_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn retries_end_with_the_deadline() {
    let hub = ScriptedHub::new();
    hub.fail_next(std::iter::repeat_n(failure(Retry::After(Duration::from_hours(1))), 5));
    let start = Instant::now();
    assert_eq!(reviewer(&hub).token(users(0), &ReviewProgress::default(), spec).await, Err(ReviewError::TimedOut));
    assert_eq!(start.elapsed(), REVIEW_DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_is_outstanding() {
    let hub = ScriptedHub::new();
    hub.close();
    let reviewer = Arc::new(reviewer(&hub));
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..MAX_OUTSTANDING + 20 {
        let reviewer = Arc::clone(&reviewer);
        callers.spawn(async move { reviewer.token(users(number), &ReviewProgress::default(), spec).await });
    }
    hub.seen_token_attempts(MAX_OUTSTANDING).await;
    tokio::task::yield_now().await;
    assert_eq!(hub.token_attempts(), MAX_OUTSTANDING);
    hub.open();
    while let Some(outcome) = callers.join_next().await {
        outcome.expect("no panic").expect("answered");
    }
    assert_eq!(hub.token_attempts(), MAX_OUTSTANDING + 20);
}

#[tokio::test(start_paused = true)]
async fn strangers_leave_places_to_users_and_have_their_own() {
    let hub = ScriptedHub::new();
    hub.hold(|_| true);
    let reviewer = Arc::new(reviewer(&hub));
    let mut callers = tokio::task::JoinSet::new();
    let lines: [(&dyn Fn(usize) -> QueueKey, usize); 4] = [
        (&|_| QueueKey::NewTokens, MAX_NEW_TOKENS),
        (&|_| QueueKey::Anonymous, MAX_NEW_TOKENS + MAX_ANONYMOUS),
        (&|_| users(0), MAX_NEW_TOKENS + MAX_ANONYMOUS + MAX_OF_ONE),
        (&users, MAX_OUTSTANDING + MAX_ANONYMOUS),
    ];
    for (line, most) in lines {
        for number in 0..MAX_OUTSTANDING * 2 {
            let (reviewer, line) = (Arc::clone(&reviewer), line(number));
            callers.spawn(async move { reviewer.token(line, &ReviewProgress::default(), spec).await });
        }
        hub.seen_present(most).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(hub.present(), most, "{:?}", line(0));
    }
}

/// A hub that sends `answers` in order, and the requests that it received.
async fn wire(answers: impl IntoIterator<Item = (u16, Value)>) -> (HttpsHub, Arc<Mutex<Vec<(String, Value)>>>) {
    let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hub = HttpsHub::start({
        let seen = Arc::clone(&seen);
        move |request, body| {
            assert_eq!(request.method(), Method::POST);
            let body = serde_json::from_slice(&body).expect("JSON");
            seen.lock().push((request.uri().path().to_owned(), body));
            let (status, body) = answers.lock().pop_front().expect("no more requests than answers");
            https::json(status, &body)
        }
    })
    .await;
    (hub, seen)
}

fn status(code: u16, reason: &str, retry_after: Option<u32>) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": "internals of the hub", "details": { "retryAfterSeconds": retry_after.unwrap_or(0) } })
}

#[tokio::test]
async fn a_token_review_on_the_wire() {
    let answer = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {},
        "status": { "authenticated": false, "user": { "username": "admin" }, "error": "expired" } });
    let (hub, seen) = wire([(201, answer)]).await;
    let status = HubReviews::new(hub.client()).token_review(spec()).await.expect("answered");
    assert_eq!((status.authenticated, status.error.as_deref()), (Some(false), Some("expired")));
    let (path, body) = seen.lock().remove(0);
    assert_eq!(path, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert_eq!(body["kind"], "TokenReview");
    assert_eq!(body["spec"], json!({ "token": "t" }));
}

#[tokio::test]
async fn an_access_review_on_the_wire() {
    let answer = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {},
        "status": { "allowed": true } });
    let (hub, seen) = wire([(201, answer)]).await;
    let spec = SubjectAccessReviewSpec { user: Some("u".to_owned()), ..SubjectAccessReviewSpec::default() };
    let status = HubReviews::new(hub.client()).subject_access_review(spec).await.expect("answered");
    assert!(status.allowed);
    let (path, body) = seen.lock().remove(0);
    assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    assert_eq!(body["spec"], json!({ "user": "u" }));
}

#[tokio::test]
async fn the_hubs_errors_are_sorted_by_what_they_promise_and_say_nothing_internal() {
    let unfinished = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {} });
    for (answer, retry) in [
        ((500, status(500, "InternalError", None)), Retry::Backoff),
        ((504, status(504, "Timeout", None)), Retry::Backoff),
        ((429, status(429, "TooManyRequests", Some(3))), Retry::After(Duration::from_secs(3))),
        ((503, status(503, "ServiceUnavailable", None)), Retry::Never),
        ((403, status(403, "Forbidden", None)), Retry::Never),
        ((201, unfinished), Retry::Never),
        ((201, json!("not a review")), Retry::Never),
    ] {
        let (hub, _) = wire([answer.clone()]).await;
        match HubReviews::new(hub.client()).token_review(spec()).await {
            Err(ReviewError::Hub { message, retry: found }) => {
                assert_eq!(found, retry, "{answer:?}");
                assert!(!message.contains("internals"), "{message}");
            }
            other => panic!("{answer:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_hub_that_is_not_there_is_an_error() {
    let hub = HttpsHub::start(|_, _| unreachable!("nobody asks")).await;
    let client = hub.client();
    drop(hub);
    let outcome = HubReviews::new(client).token_review(spec()).await;
    assert!(matches!(&outcome, Err(ReviewError::Hub { .. })), "{outcome:?}");
}
