//! Large request heads: a hub's head for a user with many groups passes, an absurd one is refused
//! without harm.

use std::fmt::Write as _;

use kit::client::H1Error;
use kit::member::Reply;
use system_tests::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, FrameMember, HEADERS, MemberFrames, STATUS_200, encode, literals,
};
use system_tests::{ADMIN, CLUSTER, Http, Testbed, Versions, across_versions, proxied};

use super::agreeable;

/// As many lines as a header map holds: no line can be added to a request with them.
const FULL: u32 = 24_575;

/// Names of four bytes, all different: this many lines still fit a head of a mebibyte.
fn short_names(lines: u32) -> Vec<String> {
    let digit = |number: u32| char::from_digit(number % 36, 36).expect("less than 36");
    let name = |number: u32| ['q', digit(number / 1296), digit(number / 36), digit(number)];
    (0..lines).map(|number| name(number).iter().collect()).collect()
}

across_versions!(four_hundred_groups_and_a_large_header_are_accepted, a_large_head_of_an_answer_is_relayed);

async fn four_hundred_groups_and_a_large_header_are_accepted(versions: Versions) {
    let member = agreeable(versions.member).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let groups: Vec<String> = (0..400).map(|number| format!("oidc:organisation/team-{number}")).collect();
    let headers: Vec<_> = groups.iter().map(|group| ("x-remote-group", group.as_str())).collect();
    let answer = connection.call("GET", &proxied(CLUSTER, "/groups"), &headers, b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(member.next_request().await.header("x-remote-group"), None);

    let large = "x".repeat(200 << 10);
    let answer = connection.call("GET", &proxied(CLUSTER, "/large"), &[("x-large", &large)], b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(member.next_request().await.header("x-large") == Some(&large), "not the same 200 KiB");

    let query = format!("/q?fieldSelector={}", "x".repeat(60_000));
    assert_eq!(connection.get(&proxied(CLUSTER, &query)).await.status, 200);
    assert!(member.next_request().await.target == query, "not the same query");
}

/// A request head with this many header lines beyond those that every request has.
fn many_lines(lines: usize) -> String {
    let target = proxied(CLUSTER, "/x");
    let mut head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n");
    for number in 0..lines {
        write!(head, "X-Line-{number}: 1\r\n").expect("a String takes everything");
    }
    head + "\r\n"
}

#[tokio::test]
async fn five_hundred_header_lines_are_served_and_six_hundred_refused() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.client().h1().await.expect("a connection");
    connection.send(many_lines(500)).await.expect("taken");
    assert_eq!(connection.head().await.expect("an answer").status, 200);

    let mut connection = testbed.client().h1().await.expect("a connection");
    connection.send(many_lines(600)).await.expect("taken");
    assert_eq!(connection.head().await.expect("a clean refusal").status, 431);
    connection.body().await.expect("a whole refusal");
    connection.send(many_lines(0)).await.ok();
    let end = connection.head().await.expect_err("the connection ends with the refusal");
    assert!(matches!(end, H1Error::NoAnswer | H1Error::Io(_)), "{end:?}");
    assert_eq!(member.request_count(), 1);
}

#[tokio::test]
async fn more_than_a_mebibyte_of_headers_is_refused_and_the_connection_goes_on() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let large = "x".repeat(300 << 10);
    let headers: Vec<_> = ["x-a", "x-b", "x-c", "x-d"].iter().map(|name| (*name, large.as_str())).collect();
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &headers, b"").await;
    assert!(answer.status_message(431, "BadRequest").contains("512 KiB"), "{}", answer.text());
    assert_eq!(member.request_count(), 0);
    assert_eq!(connection.get(&proxied(CLUSTER, "/x")).await.status, 200, "other requests are not harmed");
}

async fn a_large_head_of_an_answer_is_relayed(versions: Versions) {
    let member = versions.member.member().await;
    let large = "x".repeat(200 << 10);
    let told = large.clone();
    member.on_any(move |_| Reply::full(200, &[("x-large", &told)], "body"));
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(versions.client).await.get(&proxied(CLUSTER, "/x")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "body"));
    assert!(answer.header("x-large") == Some(&large), "not the same 200 KiB");
}

#[tokio::test]
async fn as_many_header_lines_as_fit_are_answered_and_the_connection_goes_on() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let names = short_names(FULL);
    let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    let answer = connection.try_call("GET", &proxied(CLUSTER, "/x"), &headers, b"").await.expect("an answer");
    assert!(matches!(answer.status, 200 | 431), "{}", answer.status);
    assert_eq!(connection.get(&proxied(CLUSTER, "/x")).await.status, 200, "other requests are not harmed");
}

#[tokio::test]
async fn as_many_header_lines_of_a_member_as_fit_are_answered() {
    let member = FrameMember::start(|_, frames| answer_by_short_names(frames)).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let answer = connection.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await.expect("an answer");
    assert!(matches!(answer.status, 200 | 502), "{}", answer.status);
}

/// Answers every request by 200 and as many lines.
async fn answer_by_short_names(mut frames: MemberFrames) -> std::io::Result<()> {
    /// Size of a frame that every peer takes (RFC 9113 section 4.2).
    const FRAME: usize = 16 << 10;
    let names = short_names(FULL + 1);
    let lines: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    let lines = literals(&lines);
    loop {
        let frame = frames.read().await?;
        if frame.kind != HEADERS {
            continue;
        }
        let mut head = encode(HEADERS, END_STREAM, frame.stream, STATUS_200);
        for part in lines.chunks(FRAME) {
            head.extend(encode(CONTINUATION, 0, frame.stream, part));
        }
        head.extend(encode(CONTINUATION, END_HEADERS, frame.stream, &[]));
        frames.send_all(&head).await?;
    }
}
