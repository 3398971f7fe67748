//! Streams that stay open use up what one connection to the member allows: further requests get
//! another connection.

use std::collections::HashMap;

use system_tests::prelude::*;

use super::{SOON, assert_others_are_served};

across_http!(a_hundred_and_fifty_watches_are_one_clients_right);

/// More than a member allows on one connection, fewer than we allow a client on one.
const WATCHES: usize = 150;

async fn a_hundred_and_fifty_watches_are_one_clients_right(member: Http) {
    let speaks = member;
    let member = speaks.member().await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let mut streams = member.streams("/watch");
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let mut watches = Vec::new();
    for number in 0..WATCHES {
        let target = proxied(CLUSTER, &format!("/watch?watch=true&n={number}"));
        watches.push(connection.open_beside("GET", &target).await.expect("a head"));
    }
    assert_others_are_served(&testbed, Some(&connection)).await;

    let mut senders = HashMap::new();
    for _ in 0..WATCHES {
        let (request, stream) = streams.next().await;
        senders.insert(request.query().expect("one was sent").to_owned(), stream);
    }
    for (number, watch) in watches.iter_mut().enumerate() {
        let query = format!("watch=true&n={number}");
        assert!(senders[&query].send(format!("{number}\n")).await);
        let line = within(SOON, "an event", watch.line()).await.expect("open");
        assert_eq!(line, Some(format!("{number}\n")));
    }
    let connections = match speaks {
        Http::H1 => WATCHES + 1,
        Http::H2 => 2, // of a hundred streams each
    };
    assert_eq!(member.connections_accepted(), connections);
}

#[tokio::test]
async fn a_member_that_takes_one_request_at_a_time_gets_a_connection_for_each() {
    let member = FakeMember::start(MemberOptions { max_concurrent_streams: 1, ..MemberOptions::default() }).await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let _streams = member.streams("/watch");
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let mut watches = Vec::new();
    for open in 1..=5 {
        watches.push(connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=true")).await.expect("a head"));
        assert_eq!(member.connections_open(), open);
    }
    assert_others_are_served(&testbed, Some(&connection)).await;
    assert_eq!(member.connections_open(), 6, "the idle one is used again");
}

#[tokio::test]
async fn a_crowd_of_first_requests_shares_one_connection() {
    let member = Http::H2.member().await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let mut crowd = Vec::new();
    for _ in 0..50 {
        crowd.push(connection.upload_beside("POST", &proxied(CLUSTER, "/small")).await.expect("sent"));
    }
    for one in crowd {
        assert_eq!(one.answer().await.expect("an answer").status, 200);
    }
    assert_eq!((member.request_count(), member.connections_accepted()), (50, 1));
}
