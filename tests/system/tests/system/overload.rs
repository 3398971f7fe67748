//! Limits on requests in flight: those beyond are asked to come again, nothing is sent for them,
//! and other users do not notice.

mod exempt;
mod held;
mod library;
mod members;
mod own;
mod reviews;
mod strangers;
mod watches;

use bytes::Bytes;
use system_tests::TestbedBuilder;
use system_tests::prelude::*;

/// Never answered.
const SLOW: &str = "/api/v1/slow";
/// Answered at once.
const FAST: &str = "/api/v1/fast";
/// A stream.
const WATCH: &str = "/api/v1/pods?watch=true";
const OTHER: &str = "c2";

/// A hub with users, a member under two names, and the gateway of all of it.
struct Fixture {
    hub: Arc<FakeHub>,
    member: FakeMember,
    testbed: Testbed,
}

// === impl Fixture ===

impl Fixture {
    async fn with(arguments: &[&str]) -> Self {
        let (hub, member) = (Arc::new(FakeHub::start().await), FakeMember::start(MemberOptions::default()).await);
        member.on_any(|_| Reply::full(200, &[], "done"));
        member.on(SLOW, |_| Reply::Never);
        for name in [CLUSTER, OTHER] {
            hub.put_secret(cluster(name, &member));
        }
        for user in ["alice", "bob"] {
            hub.add_token(user, TokenUser::new(user, &[]));
        }
        hub.add_token("root", TokenUser::new("root", &["system:masters"]));
        hub.allow_all();
        let testbed = arguments
            .iter()
            .fold(Testbed::builder().hub(&hub), |testbed, argument| TestbedBuilder::arg(testbed, argument));
        let testbed = testbed.start().await;
        Self { hub, member, testbed }
    }

    async fn connect(&self, http: Http, user: &str) -> Connection {
        self.testbed.anonymous(http).await.bearer(user)
    }

    /// Requests that stay open until they are dropped, each with its connection.
    async fn occupy(&self, user: &str, count: usize) -> Vec<Connection> {
        let mut held = Vec::new();
        for _ in 0..count {
            let mut connection = self.connect(Http::H1, user).await;
            let bearer = format!("Bearer {user}");
            let (target, headers) = (proxied(CLUSTER, SLOW), [("authorization", bearer.as_str())]);
            connection.h1().request("GET", &target, &headers, b"").await.expect("sent");
            self.member.next_request().await;
            held.push(connection);
        }
        held
    }
}

/// Asserts that `answer` says come again, and names `flag`.
#[track_caller]
fn assert_too_many(answer: &Answer, flag: &str) {
    let message = answer.status_message(429, "TooManyRequests");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["details"]["retryAfterSeconds"], 1);
    assert!(message.contains(&format!(", {flag})")), "{message}");
}

across_http!(a_full_cluster_turns_away_what_comes_next_and_no_other_cluster_notices);

async fn a_full_cluster_turns_away_what_comes_next_and_no_other_cluster_notices(http: Http) {
    let fixture = Fixture::with(&["--max-requests-per-cluster=2"]).await;
    let held = fixture.occupy("alice", 2).await;
    let before = fixture.member.request_count();
    let mut bob = fixture.connect(http, "bob").await;
    let answer = bob.call("POST", &proxied(CLUSTER, FAST), &[], b"{}").await;
    assert_too_many(&answer, "--max-requests-per-cluster");
    assert_eq!(answer.json()["details"]["name"], CLUSTER);
    assert_eq!(fixture.member.request_count(), before, "nothing was sent");
    assert_eq!(bob.get(&proxied(OTHER, FAST)).await.status, 200);
    // A client that leaves makes room.
    drop(held);
    let target = proxied(CLUSTER, FAST);
    bob.until(WAIT, &target, |answer| answer.status == 200).await;
    let metrics = fixture.connect(Http::H2, "root").await.get("/metrics").await.text();
    let count = |reason: &str| {
        let name = format!("cluster_gateway_requests_rejected_total{{reason=\"{reason}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).expect(reason)
    };
    assert!(count("cluster") >= 1);
    assert_eq!((count("cluster_long"), count("user"), count("user_long")), (0, 0, 0));
}

/// Only what the member takes for a watch or a followed log has a budget of its own.
#[tokio::test]
async fn a_word_in_the_query_is_no_way_around_the_cap() {
    let fixture = Fixture::with(&["--max-requests-per-user=2"]).await;
    let _held = fixture.occupy("alice", 2).await;
    let mut alice = fixture.connect(Http::H2, "alice").await;
    for rest in [
        "/api/v1/fast?watch=0",
        "/api/v1/namespaces/ns/pods/p?watch=1",
        "/api/v1/namespaces/ns/services/s/proxy/x?watch=true&follow=true",
        "/api/v1/pods?follow=true",
        "/version?watch=1",
    ] {
        assert_too_many(&alice.get(&proxied(CLUSTER, rest)).await, "--max-requests-per-user");
    }
    assert_too_many(&alice.get("/apis?watch=1").await, "--max-requests-per-user");
    for rest in ["/api/v1/pods?watch=1", "/api/v1/namespaces/ns/pods/p/log?follow=1", "/api/v1/watch/pods"] {
        assert_eq!(alice.get(&proxied(CLUSTER, rest)).await.status, 200, "{rest}");
    }
}

across_http!(a_user_with_too_much_under_way_is_turned_away_alone);

async fn a_user_with_too_much_under_way_is_turned_away_alone(http: Http) {
    let fixture = Fixture::with(&["--max-requests-per-user=2"]).await;
    let held = fixture.occupy("alice", 2).await;
    let mut alice = fixture.connect(http, "alice").await;
    for target in [proxied(CLUSTER, FAST), proxied(OTHER, FAST), "/apis".to_owned()] {
        assert_too_many(&alice.get(&target).await, "--max-requests-per-user");
    }
    assert_eq!(fixture.connect(http, "bob").await.get(&proxied(CLUSTER, FAST)).await.status, 200);
    drop(held);
    let target = proxied(CLUSTER, FAST);
    alice.until(WAIT, &target, |answer| answer.status == 200).await;
}

#[tokio::test]
async fn what_lasts_has_a_budget_of_its_own() {
    let fixture = Fixture::with(&["--max-requests-per-cluster=1", "--max-long-requests-per-cluster=2"]).await;
    let mut streams = fixture.member.streams("/api/v1/pods");
    let alice = fixture.connect(Http::H2, "alice").await;
    let mut watches = Vec::new();
    for _ in 0..2 {
        let watch = alice.open_beside("GET", &proxied(CLUSTER, WATCH)).await.expect("a head");
        watches.push((watch, streams.next().await));
    }
    let mut bob = fixture.connect(Http::H2, "bob").await;
    assert_too_many(&bob.get(&proxied(CLUSTER, WATCH)).await, "--max-long-requests-per-cluster");
    assert_eq!(bob.get(&proxied(CLUSTER, FAST)).await.status, 200, "watches take nothing from the others");
    // A body that goes on counts until its end, whatever its head said.
    let (_, (_, stream)) = &watches[0];
    assert!(stream.send("event\n").await);
    assert_too_many(&bob.get(&proxied(CLUSTER, WATCH)).await, "--max-long-requests-per-cluster");
    watches.clear();
    let target = proxied(CLUSTER, WATCH);
    let is_open = async || bob.open_beside("GET", &target).await.expect("a head").status == 200;
    becomes(WAIT, "room", is_open).await;
}

#[tokio::test]
async fn an_upgrade_counts_until_it_is_closed() {
    let fixture = Fixture::with(&["--max-long-requests-per-user=1"]).await;
    fixture.member.on("/exec", |_| Reply::upgrade_echo("websocket"));
    let open = async || {
        let mut connection = fixture.testbed.client().h1().await.expect("the gateway accepts connections");
        let headers = [("Authorization", "Bearer alice")];
        let head = connection.upgrade("GET", &proxied(CLUSTER, "/exec"), "websocket", &headers).await.expect("a head");
        (connection, head)
    };
    let (mut first, head) = open().await;
    assert_eq!(head.status, 101);
    let (_, refused) = open().await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    first.send("still here").await.expect("taken");
    assert_eq!(first.read_exact(10).await.expect("echoed"), Bytes::from("still here"));
    drop(first);
    becomes(WAIT, "room", async || open().await.1.status == 101).await;
}

#[tokio::test]
async fn a_slot_is_held_for_the_whole_of_a_body() {
    let fixture = Fixture::with(&["--max-requests-per-cluster=1"]).await;
    let mut streams = fixture.member.streams("/download");
    let alice = fixture.connect(Http::H2, "alice").await;
    let download = alice.open_beside("GET", &proxied(CLUSTER, "/download")).await.expect("a head");
    let (_, stream) = streams.next().await;
    let mut bob = fixture.connect(Http::H2, "bob").await;
    assert_too_many(&bob.get(&proxied(CLUSTER, FAST)).await, "--max-requests-per-cluster");
    assert!(stream.send("last").await);
    drop(stream);
    assert_eq!(download.whole().await.expect("a proper end").text(), "last");
    let target = proxied(CLUSTER, FAST);
    bob.until(WAIT, &target, |answer| answer.status == 200).await;
}

#[tokio::test]
async fn a_changed_secret_does_not_forget_what_is_under_way() {
    let fixture = Fixture::with(&["--max-requests-per-cluster=1"]).await;
    let held = fixture.occupy("alice", 1).await;
    fixture.hub.put_secret(cluster(CLUSTER, &fixture.member).token("another-token"));
    // The other cluster's change comes after it on the same watch.
    fixture.hub.put_secret(cluster(OTHER, &fixture.member).token("seen"));
    let mut bob = fixture.connect(Http::H2, "bob").await;
    becomes(WAIT, "the change", async || {
        bob.get(&proxied(OTHER, FAST)).await;
        fixture.member.next_request().await.headers["authorization"] == "Bearer seen"
    })
    .await;
    assert_too_many(&bob.get(&proxied(CLUSTER, FAST)).await, "--max-requests-per-cluster");
    drop(held);
}

#[tokio::test]
async fn requests_that_are_reset_leave_no_count_behind() {
    let fixture = Fixture::with(&["--max-requests-per-user=2", "--max-requests-per-cluster=2"]).await;
    let alice = fixture.connect(Http::H2, "alice").await;
    let headers = [("authorization", "Bearer alice")];
    for _ in 0..10 {
        let pending = alice.h2().send(Method::GET, &proxied(CLUSTER, SLOW), &headers, true).await.expect("sent");
        let asked = fixture.member.next_request().await;
        pending.reset(h2::Reason::CANCEL);
        assert_eq!(fixture.member.cancelled().await.number, asked.number);
    }
}
