//! A hub speaks for all its users over few connections. A request of one of them that is taken back
//! before it was looked at, or that no proxy serves, ends no other user's stream.

use kit::hub::FakeHub;
use kit::member::{FakeMember, MemberOptions};
use system_tests::frames::{END_HEADERS, END_STREAM, FrameClient, HEADERS, RST_STREAM, encode, literals, request};
use system_tests::{ADMIN, CLUSTER, Testbed, VIEWER, proxied};

use super::hub::Hub;

/// Far more than h2 lets wait by default (`DEFAULT_REMOTE_RESET_STREAM_MAX`, 20), and than a hub
/// has in flight at once.
const TAKEN_BACK: usize = 2_000;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Requests and their resets, one behind the other: they are read together, and no handler has
/// begun.
fn taken_back(client: &mut FrameClient, method: &str, authorization: &str) -> Vec<u8> {
    let head = request(method, &proxied(CLUSTER, "/x"), &[("authorization", authorization)]);
    let one = |_| {
        let stream = client.stream();
        [encode(HEADERS, END_HEADERS | END_STREAM, stream, &head), encode(RST_STREAM, 0, stream, &CANCEL)].concat()
    };
    (0..TAKEN_BACK).flat_map(one).collect()
}

async fn requests_taken_back(method: &str, token: &str) {
    let member = FakeMember::start(MemberOptions::default()).await;
    let testbed = Testbed::with(&member).await;
    let mut hub = Hub::connect(&testbed, &member).await;
    let requests = taken_back(&mut hub.client, method, &format!("Bearer {token}"));
    hub.client.send_all(&requests).await;
    hub.assert_goes_on().await;
}

#[tokio::test]
async fn requests_taken_back_at_once_do_not_end_the_hubs_connection() {
    requests_taken_back("GET", ADMIN).await;
}

#[tokio::test]
async fn requests_taken_back_by_a_user_without_rights_do_not_end_the_hubs_connection() {
    requests_taken_back("DELETE", VIEWER).await;
}

/// hyper's server ends the *connection* for a CONNECT with a length: ours must refuse that stream
/// alone, where other servers refuse the stream.
#[tokio::test]
async fn a_connect_with_a_body_does_not_end_the_hubs_connection() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let testbed = Testbed::with(&member).await;
    let mut hub = Hub::connect(&testbed, &member).await;
    let lines = [(":method", "CONNECT"), (":authority", "localhost"), ("content-length", "5")];
    for _ in 0..3 {
        let stream = hub.client.stream();
        hub.client.send_all(&encode(HEADERS, END_HEADERS, stream, &literals(&lines))).await;
        hub.client.until("a refusal", |frame| (frame.kind, frame.stream) == (RST_STREAM, stream)).await;
    }
    hub.assert_goes_on().await;
}

/// More than h2 answers by resets on a direct client's connection before it ends that.
#[tokio::test]
async fn heads_that_the_library_refuses_do_not_end_the_hubs_connection() {
    const REFUSED: usize = 5_000;
    let hub = FakeHub::start().await;
    let testbed = Testbed::builder().hub(&hub).start().await;
    testbed.ready().await;
    let mut client = FrameClient::connect_as_hub(&testbed, &hub).await;
    // Two methods. From a hub it would be a path of 100 KiB.
    let one = |_| encode(HEADERS, END_HEADERS | END_STREAM, client.stream(), &[0x82, 0x82]);
    let heads: Vec<u8> = (0..REFUSED).flat_map(one).collect();
    client.send_all(&heads).await;
    client.settled().await;
}
