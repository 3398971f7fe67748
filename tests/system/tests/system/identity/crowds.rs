//! The reviews of crowds of strangers on the hub never make users wait. Nor do those of one user
//! without rights.

use futures_util::future::select_ok;
use kit::client::H2Exchange;
use system_tests::prelude::*;

use super::{Fixture, target};

/// Time that the hub takes for a review: long, so that what a busy machine adds is little.
const REVIEW: Duration = Duration::from_secs(4);
/// Time that a user may have to wait: a few reviews, not those of the crowd, which are 64 s when
/// made a hundred at a time (those of one user 40 s).
const SOON: Duration = Duration::from_secs(20);
/// Connections of strangers.
const STRANGERS: usize = 16;
/// Requests of each.
const EACH: usize = 100;
/// Connections of a user without rights, and requests of each, as many as a connection carries.
const MALLORYS: usize = 17;
const OF_ONE: usize = 249;
/// Bytes of a path that no review is remembered for.
const LONG: usize = 12_000;

impl Fixture {
    /// A hub that allows alice everything, and alice's connection, with a token that the gateway
    /// knows already.
    async fn with_alice() -> (Self, Connection) {
        let fixture = Box::pin(Self::set()).await;
        fixture.hub.add_token("alices", TokenUser::new("alice", &[]));
        fixture
            .hub
            .on_access(|spec| if spec["user"] == "alice" { Decision::allow() } else { Decision::no_opinion("") });
        let mut alice = Box::pin(fixture.connect(Http::H2, None)).await.bearer("alices");
        assert_eq!(alice.get(&target()).await.status, 200);
        (fixture, alice)
    }

    /// Strangers that send a different request each, and leave without waiting for an answer.
    async fn crowd(&self, request: impl Fn(usize, usize) -> (String, Vec<(&'static str, String)>)) {
        for stranger in 0..STRANGERS {
            let mut connection = self.connect(Http::H2, None).await;
            let mut asked = Vec::new();
            for number in 0..EACH {
                let (path, headers) = request(stranger, number);
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                // An error is a stranger being shown the door.
                asked.push(connection.h2().send(Method::GET, &path, &headers, true).await.ok());
            }
            // Requests are taken in their order: answered after the others have been.
            connection.try_call("GET", "/livez", &[], b"").await.ok();
            drop(asked);
        }
    }
}

/// One of mallory's connections, and her requests there.
type Waiting = (Connection, Vec<H2Exchange>);

impl Fixture {
    /// Mallory, with a token that the hub knows and without rights: each of her requests is a
    /// different one, and she waits for the answers.
    async fn mallory(&self, target: impl Fn(usize, usize) -> String) -> Vec<Waiting> {
        self.hub.add_token("mallorys", TokenUser::new("mallory", &[]));
        let mut known = self.connect(Http::H2, None).await.bearer("mallorys");
        assert_eq!(known.get(&proxied("another", "/x")).await.status, 403);
        self.hub.fail(Call::AccessReview, Fault::Delay(REVIEW));
        let mut all = Vec::new();
        for number in 0..MALLORYS {
            let mut connection = self.connect(Http::H2, None).await;
            let mut asked = Vec::new();
            for request in 0..OF_ONE {
                let headers = [("authorization", "Bearer mallorys")];
                let target = target(number, request);
                asked.push(connection.h2().send(Method::GET, &target, &headers, true).await.expect("sent"));
            }
            // Requests are taken in their order: answered after the others have been.
            assert_eq!(connection.get("/livez").await.status, 200);
            all.push((connection, asked));
        }
        all
    }
}

/// Asserts that mallory is told that she has too many reviews waiting: those of her last requests
/// that found a place, because a review had just ended, wait behind a thousand others.
async fn assert_is_told(mallory: Vec<Waiting>) {
    let (_connection, asked) = mallory.into_iter().next_back().expect("there is a last one");
    let first = select_ok(asked.into_iter().map(|one| Box::pin(one.response())));
    let (answer, _others) = within(SOON, "the answer to one too many", first).await.expect("an answer");
    let (status, text) = (answer.status(), answer.text().await.expect("a whole body"));
    assert_eq!(status, 429, "{text}");
    assert!(text.contains("too many reviews of user \\\"mallory\\\" are waiting for the hub (limit 1024)"), "{text}");
}

/// Asserts that a new kind of request of alice's is served soon.
async fn assert_is_served(mut alice: Connection) {
    let target = target();
    let asking = alice.call("POST", &target, &[], b"{}");
    assert_eq!(within(SOON, "the answer to a user", asking).await.status, 200);
}

#[tokio::test]
async fn those_without_a_credential_do_not_hold_up_users() {
    let (fixture, alice) = Fixture::with_alice().await;
    fixture.hub.fail(Call::AccessReview, Fault::Delay(REVIEW));
    fixture
        .crowd(|stranger, number| {
            let width = if number % 2 == 0 { LONG } else { 0 };
            (format!("/{stranger}/{number:0width$}"), Vec::new())
        })
        .await;
    assert_is_served(alice).await;
}

#[tokio::test]
async fn those_without_a_credential_who_ask_for_clusters_do_not_hold_up_users() {
    let (fixture, alice) = Fixture::with_alice().await;
    fixture.hub.fail(Call::AccessReview, Fault::Delay(REVIEW));
    fixture.crowd(|stranger, number| (proxied(&format!("{CLUSTER}-{stranger}-{number}"), "/x"), Vec::new())).await;
    assert_is_served(alice).await;
}

#[tokio::test]
async fn those_with_junk_for_tokens_do_not_hold_up_users() {
    let (fixture, alice) = Fixture::with_alice().await;
    fixture.hub.fail(Call::TokenReview, Fault::Delay(REVIEW));
    fixture
        .crowd(|stranger, number| (target(), vec![("authorization", format!("Bearer junk-{stranger}-{number}"))]))
        .await;
    assert_is_served(alice).await;
}

#[tokio::test]
async fn one_who_may_do_nothing_and_asks_for_clusters_does_not_hold_up_users() {
    let (fixture, alice) = Fixture::with_alice().await;
    let mallory = fixture.mallory(|number, request| proxied(&format!("{CLUSTER}-{number}-{request}"), "/x")).await;
    assert_is_served(alice).await;
    assert_is_told(mallory).await;
}

#[tokio::test]
async fn one_who_may_do_nothing_and_asks_for_long_paths_does_not_hold_up_users() {
    let (fixture, alice) = Fixture::with_alice().await;
    let mallory = fixture.mallory(|number, request| format!("/{number}/{request:0LONG$}")).await;
    assert_is_served(alice).await;
    assert_is_told(mallory).await;
}
