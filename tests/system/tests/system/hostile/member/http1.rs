//! Members in bytes (RFC 9112): heads and bodies that can be read in two ways, or never end.

use system_tests::prelude::*;

use super::{Asked, Expected, beside_a_victim, name};

const REFUSED: &[Expected] = &[Expected::Refused];
const CUT: &[Expected] = &[Expected::Cut];
/// It is passed on as it was read, in one way, and the connection used for nothing else.
const ONE_WAY: &[Expected] = &[Expected::Refused, Expected::Answer(2)];

/// The text after `HTTP/1.1 `.
const ROWS: &[(&str, &str, &[Expected])] = &[
    ("a line break in a value", "200 OK\r\nX-Split: a\rX-Evil: evil-words\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a NUL in a value", "200 OK\r\nX-Split: a\0evil-words\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a line break in a reason", "200 OK\rX-Evil: evil-words\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a NUL in a reason", "200 O\0K\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a folded line", "200 OK\r\nX-Fold: a\r\n evil-words\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a space before the colon", "200 OK\r\nContent-Length : 2\r\n\r\nok", REFUSED),
    ("a line without a colon", "200 OK\r\nevil-words\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a status of four digits", "2000 OK\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("a status of letters", "2xx OK\r\nContent-Length: 2\r\n\r\nok", REFUSED),
    ("two lengths", "200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", REFUSED),
    ("two lengths in a line", "200 OK\r\nContent-Length: 2, 3\r\n\r\nok!", REFUSED),
    ("a length below nothing", "200 OK\r\nContent-Length: -2\r\n\r\nok", REFUSED),
    ("a length with a sign", "200 OK\r\nContent-Length: +2\r\n\r\nok", REFUSED),
    ("a length with a space", "200 OK\r\nContent-Length: 2 3\r\n\r\nok", REFUSED),
    ("a length in hexadecimal", "200 OK\r\nContent-Length: 0x2\r\n\r\nok", REFUSED),
    ("a length beyond all", "200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", REFUSED),
    (
        "a length and chunks",
        "200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ONE_WAY,
    ),
    ("a coding that nobody knows", "200 OK\r\nTransfer-Encoding: evil\r\n\r\nok", ONE_WAY),
    ("chunks twice", "200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", ONE_WAY),
    ("a chunk whose size is none", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n", CUT),
    ("a chunk whose size is beyond all", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nok", CUT),
    ("a chunk longer than it said", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n", CUT),
    ("half a body", "200 OK\r\nContent-Length: 20\r\n\r\nok", CUT),
    (
        "a switch of protocols",
        "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nevil-words",
        REFUSED,
    ),
    ("another protocol's words", "\r\n220 mail.example ESMTP evil-words\r\n", REFUSED),
];

/// A text that comes so many times behind `HTTP/1.1 200 OK\r\n`, or in its place. The member does
/// not end it.
const ENDLESS: &[(&str, &str, &str, usize, &[Expected])] = &[
    ("lines without an end", "HTTP/1.1 200 OK\r\n", "X-Endless: evil-words\r\n", 200_000, REFUSED),
    ("a line without an end", "HTTP/1.1 200 OK\r\nX-Endless: ", "evil-words", 500_000, REFUSED),
    ("hints without an end", "", "HTTP/1.1 103 Early Hints\r\nLink: </evil-words>\r\n\r\n", 200_000, REFUSED),
    ("a hint without an end", "HTTP/1.1 103 Early Hints\r\nX-Endless: ", "evil-words", 500_000, REFUSED),
    (
        "a body without an end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "a\r\n0123456789\r\n",
        20_000,
        &[Expected::Open(200_000)],
    ),
    (
        "a chunk's extension without an end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        "evil-words",
        500_000,
        CUT,
    ),
    (
        "trailers without an end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "X-Endless: evil-words\r\n",
        500_000,
        CUT,
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_of_a_member_in_http1_is_anybody_elses() {
    let once = ROWS.iter().map(|(name, text, expected)| (*name, format!("HTTP/1.1 {text}"), *expected));
    let endless = ENDLESS
        .iter()
        .map(|(name, first, again, times, expected)| (*name, format!("{first}{}", again.repeat(*times)), *expected));
    let (mut members, mut rows) = (Vec::new(), Vec::new());
    let rows_of = once.map(|row| (row, Act::Close)).chain(endless.map(|row| (row, Act::Hold)));
    for (number, ((row, answer, expected), end)) in rows_of.enumerate() {
        let member = RawMember::always(Act::answer(answer, end)).await;
        rows.push(Asked { row, secret: cluster(&name(number), &member), expected, is_read: None });
        members.push(member);
    }
    Box::pin(beside_a_victim(FakeHub::start().await, &rows)).await;
}
