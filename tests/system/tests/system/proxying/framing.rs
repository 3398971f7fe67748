//! HTTP/1.1 requests whose end two servers might see in different places: refused, or the last on
//! their connection. Text hidden in them is never a request (RFC 9112 section 11.2).

use kit::client::{H1Connection, H1Error};
use system_tests::{ADMIN, CLUSTER, Http, Testbed, across_http, proxied};

use super::agreeable;

across_http!(
    a_request_hidden_in_a_body_reaches_nobody,
    what_is_not_http_reaches_nobody,
    two_lengths_of_one_body_are_refused_before_the_member,
    a_chunked_body_behind_others_is_served,
);

const LAST_CHUNK: &str = "0\r\n\r\n";
/// Lines that say in two ways, or in none, where the body ends, and the text between the head and a
/// request that hides there.
pub(crate) const AMBIGUOUS: &[(&str, &str, &str)] = &[
    ("chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", LAST_CHUNK),
    ("two lengths", "Content-Length: 0\r\nContent-Length: 4\r\n", ""),
    ("a list of lengths", "Content-Length: 0, 4\r\n", ""),
    ("a signed length", "Content-Length: +0\r\n", ""),
    ("an odd length", "Content-Length: 0x0\r\n", ""),
    ("another coding", "Transfer-Encoding: xchunked\r\n", LAST_CHUNK),
    ("chunked is not the last coding", "Transfer-Encoding: chunked, gzip\r\n", LAST_CHUNK),
    ("a space before the colon", "Transfer-Encoding : chunked\r\n", LAST_CHUNK),
    ("a folded line", "X-Folded: a\r\n Content-Length: 0\r\n", ""),
];

/// The heads of a POST with `lines` beside the usual ones.
fn post(lines: &str) -> String {
    let target = proxied(CLUSTER, "/outer");
    format!("POST {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n{lines}\r\n")
}

/// A whole request that must not be seen as one.
fn hidden() -> String {
    format!("GET {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n\r\n", proxied(CLUSTER, "/hidden"))
}

/// Reads answers until the connection ends; returns their statuses.
pub(crate) async fn statuses(connection: &mut H1Connection) -> Vec<u16> {
    let mut statuses = Vec::new();
    loop {
        match connection.head().await {
            Ok(head) => statuses.push(head.status),
            Err(H1Error::NoAnswer | H1Error::Io(_)) => return statuses,
            Err(error) => panic!("{error}"),
        }
        if connection.body().await.is_err() {
            return statuses;
        }
    }
}

async fn a_request_hidden_in_a_body_reaches_nobody(member: Http) {
    let member = agreeable(member).await;
    let testbed = Testbed::with(&member).await;
    let hidden = hidden();
    // A server that goes by the length takes the bytes after the last chunk for the body, one that
    // goes by the chunks for a request.
    let length = format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", 5 + hidden.len());
    let first = [("length and chunks", length.as_str(), LAST_CHUNK)];
    for (case, lines, before) in first.iter().chain(AMBIGUOUS) {
        let request = post(lines) + before + &hidden;
        let mut connection = testbed.client().h1().await.expect("a connection");
        connection.send(request).await.expect("taken");
        let statuses = statuses(&mut connection).await;
        assert!(statuses.len() <= 1, "{case}: answered {statuses:?}");
        let seen: Vec<_> = member.requests().into_iter().filter(|request| request.path() != "/outer").collect();
        assert!(seen.is_empty(), "{case}: {seen:?}");
    }
}

async fn two_lengths_of_one_body_are_refused_before_the_member(member: Http) {
    let member = agreeable(member).await;
    let testbed = Testbed::with(&member).await;
    let (hidden, empty) = (hidden(), "0\r\n\r\n");
    // Requests answered before, on the same connection: none, a body that reads like a head, the
    // same in pieces.
    let earlier = format!("X: y\r\n\r\n{}", post("Content-Length: 7\r\n"));
    let earlier = post(&format!("Content-Length: {}\r\n", earlier.len())) + &earlier;
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "transfer-encoding:chunked\r\nX: y\r\ncontent-LENGTH:\t5 \r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: none\r\n",
        "Transfer-Encoding: chunked\nContent-Length: 5\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: , chunked\r\n",
    ] {
        let refused = post(lines) + empty + &hidden;
        for (case, request, expected) in [
            ("alone", refused.clone(), vec![400]),
            ("behind another", earlier.clone() + &refused, vec![200, 400]),
            ("behind empty lines", "\r\n\r\n".to_owned() + &refused, vec![400]),
        ] {
            let before = member.request_count();
            for pieces in [request.len(), 7] {
                let mut connection = testbed.client().h1().await.expect("a connection");
                for piece in request.as_bytes().chunks(pieces) {
                    // Refused in the middle, the rest is not taken.
                    if connection.send(piece).await.is_err() {
                        break;
                    }
                }
                assert_eq!(statuses(&mut connection).await, expected, "{lines:?} {case}");
            }
            assert_eq!(member.request_count() - before, 2 * (expected.len() - 1), "{lines:?} {case}");
        }
    }
}

async fn a_chunked_body_behind_others_is_served(member: Http) {
    let member = agreeable(member).await;
    let testbed = Testbed::with(&member).await;
    // In a body, these lines say nothing.
    let body = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    let earlier = post(&format!("Content-Length: {}\r\n", body.len())) + body;
    let chunked = post("Transfer-Encoding: Chunked\r\n") + &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for pieces in [usize::MAX, 11] {
        let mut connection = testbed.client().h1().await.expect("a connection");
        let request = earlier.clone() + &hidden() + &chunked;
        for piece in request.as_bytes().chunks(pieces) {
            connection.send(piece).await.expect("taken");
        }
        assert_eq!(statuses(&mut connection).await, [200, 200, 200]);
    }
    assert_eq!(member.request_count(), 6);
}

async fn what_is_not_http_reaches_nobody(member: Http) {
    let member = agreeable(member).await;
    let testbed = Testbed::with(&member).await;
    let target = proxied(CLUSTER, "/x");
    for request in [
        format!("GET {target} HTTP/1.1\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        format!("GET {target} HTTP/1.1\r\nHost: a\r\nHost : b\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        format!("GET {target} b HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        format!("GET {target}<x> HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        format!("GET {target}\u{0} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        format!("GET {target} HTTP/1.1\r\nHost: a\r\nX: a\u{0}b\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        format!("GET {target} HTTP/3.0\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"),
        "\u{16}\u{3}\u{1}not TLS in TLS\r\n\r\n".to_owned(),
    ] {
        let mut connection = testbed.client().h1().await.expect("a connection");
        connection.send(&request).await.expect("taken");
        match connection.head().await {
            Ok(head) => assert!((400..500).contains(&head.status), "{request}: {}", head.status),
            Err(error) => assert!(matches!(error, H1Error::NoAnswer | H1Error::Io(_)), "{request}: {error}"),
        }
    }
    assert_eq!(member.request_count(), 0);
}
