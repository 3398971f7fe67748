//! Connections of those who have not shown who they are: few, and not for long.

use std::time::Duration;

use kit::wait::{WAIT, unless_quiet, within};
use system_tests::{CLUSTER, Http, proxied};

use super::{FAST, Fixture};

/// What one address may have.
const MOST_OF_ONE: usize = 256;
/// When a connection without a request ends.
const FIRST_REQUEST: Duration = Duration::from_secs(15);

#[tokio::test]
async fn the_oldest_of_an_address_give_way_and_those_who_are_known_stay() {
    let fixture = Fixture::with(&[]).await;
    let mut bob = fixture.connect(Http::H2, "bob").await;
    assert_eq!(bob.get(&proxied(CLUSTER, FAST)).await.status, 200);
    let client = fixture.testbed.client();
    let mut idle = Vec::new();
    for _ in 0..=MOST_OF_ONE {
        idle.push(client.h1().await.expect("a connection"));
    }
    let end = within(WAIT, "the end of the oldest", idle[0].read_to_end()).await;
    assert!(end.is_err() || end.is_ok_and(|bytes| bytes.is_empty()));
    assert!(unless_quiet(Duration::from_millis(300), idle[MOST_OF_ONE].read()).await.is_none(), "the newest stays");
    assert_eq!(bob.get(&proxied(CLUSTER, FAST)).await.status, 200, "on the same connection");
    assert_eq!(fixture.connect(Http::H2, "alice").await.get(&proxied(CLUSTER, FAST)).await.status, 200);
}

/// A probe is nobody's, and a request whose head is not whole is none.
#[tokio::test]
async fn a_connection_without_a_request_ends_after_a_while() {
    let fixture = Fixture::with(&[]).await;
    let client = fixture.testbed.client();
    let mut probing = fixture.testbed.anonymous(Http::H1).await;
    assert_eq!(probing.get("/healthz").await.status, 200);
    let (silent, mut begun) = (client.h2().await.expect("a connection"), client.h1().await.expect("a connection"));
    begun.send("GET / HTTP/1.1\r\nHost: a\r\n").await.expect("sent");
    let patience = FIRST_REQUEST + WAIT;
    let closed = tokio::time::timeout(patience, async { tokio::join!(silent.closed(), begun.read_to_end()) });
    let (_, begun) = closed.await.expect("both end");
    assert!(begun.is_err() || begun.is_ok_and(|bytes| bytes.is_empty()));
    assert_eq!(probing.get("/healthz").await.status, 200, "it had a request");
}
