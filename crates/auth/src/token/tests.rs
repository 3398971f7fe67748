//! Tests of which answers about tokens are cached, and for how long.

mod large;
mod strangers;

use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use tokio::time::advance;

use super::*;
use crate::testing::{ScriptedHub, auth, authenticated};
use crate::{Auth, Config, Metrics};

async fn ask(auth: &Auth, token: &str) -> Opinion {
    auth.authenticator.tokens.authenticate(token.as_bytes()).await
}

fn is_user(opinion: &Opinion) -> bool {
    matches!(opinion, Opinion::User(_))
}

#[tokio::test(start_paused = true)]
async fn both_answers_are_kept_for_ten_seconds() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("u", &[]));
    let auth = auth(&hub);
    for (wait, reviews) in [(0, 2), (9, 2), (1, 4)] {
        advance(Duration::from_secs(wait)).await;
        assert!(is_user(&ask(&auth, "good").await));
        assert_eq!(ask(&auth, "bad").await, refused());
        assert_eq!(hub.token_attempts(), reviews);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_is_refused_after_the_lifetime() {
    let hub = ScriptedHub::new();
    hub.token("t", authenticated("u", &[]));
    let auth = auth(&hub);
    assert!(is_user(&ask(&auth, "t").await));
    hub.token("t", TokenReviewStatus::default());
    assert!(is_user(&ask(&auth, "t").await));
    advance(Duration::from_secs(10)).await;
    assert_eq!(ask(&auth, "t").await, refused());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_an_error_is_asked_again_soon() {
    let hub = ScriptedHub::new();
    hub.token("t", TokenReviewStatus { error: Some("lookup failed".to_owned()), ..TokenReviewStatus::default() });
    let auth = auth(&hub);
    assert_eq!(ask(&auth, "t").await, refused());
    hub.token("t", authenticated("u", &[]));
    assert_eq!(ask(&auth, "t").await, refused());
    advance(UNSURE_REFUSAL).await;
    assert!(is_user(&ask(&auth, "t").await));
}

#[tokio::test]
async fn a_hundred_requests_with_one_token_cost_one_review() {
    let hub = ScriptedHub::new();
    hub.token("t", authenticated("u", &[]));
    hub.close();
    let auth = Arc::new(auth(&hub));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let auth = Arc::clone(&auth);
        callers.spawn(async move { ask(&auth, "t").await });
    }
    hub.seen_token_attempts(1).await;
    hub.open();
    while let Some(opinion) = callers.join_next().await {
        assert!(is_user(&opinion.expect("no panic")));
    }
    assert_eq!(hub.token_attempts(), 1);
}

#[tokio::test]
async fn the_file_is_asked_before_the_hub() {
    let hub = ScriptedHub::new();
    hub.token("hub", authenticated("by-hub", &[]));
    let mut auth = auth(&hub);
    let tokens = &mut Arc::get_mut(&mut auth.authenticator).expect("not shared yet").tokens;
    tokens.file = Some(TokenFile::parse(b"file,by-file,\n").expect("valid"));
    assert!(matches!(ask(&auth, "file").await, Opinion::User(user) if user.name == "by-file"));
    assert_eq!(hub.token_attempts(), 0);
    assert!(matches!(ask(&auth, "hub").await, Opinion::User(user) if user.name == "by-hub"));
}

#[tokio::test]
async fn odd_tokens_are_refused_without_a_review() {
    let hub = ScriptedHub::new();
    let auth = auth(&hub);
    let long = vec![b'a'; MAX_TOKEN_BYTES + 1];
    for token in [&b"\xff\xfe"[..], &long] {
        assert!(matches!(auth.authenticator.tokens.authenticate(token).await, Opinion::Refused(_)));
    }
    assert_eq!(hub.token_attempts(), 0);
}

#[tokio::test]
async fn without_any_source_every_token_is_refused() {
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let auth = Auth::build(&Config::default(), None, &Handle::current(), &metrics).expect("valid");
    assert_eq!(ask(&auth, "t").await, refused());
}
