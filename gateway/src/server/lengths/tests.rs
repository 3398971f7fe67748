use net::observed::ActivityObserver as _;
use proptest::prelude::*;

use super::*;

/// Whether a connection's chunked request has two lengths, if its bytes arrive in pieces of this
/// size.
fn ambiguous(bytes: &str, pieces: usize) -> bool {
    let lengths = Lengths::default();
    let mut reader = lengths.reader(None);
    for piece in bytes.as_bytes().chunks(pieces) {
        reader.on_read(piece);
    }
    lengths.are_ambiguous()
}

const CHUNKED: &str = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
const TWICE: &str = "POST /c HTTP/1.1\r\ncontent-LENGTH:5\r\nTRANSFER-encoding:  chunked\r\n\r\n0\r\n\r\n";

#[test]
fn a_second_length_is_seen_wherever_it_stands() {
    let many = (0..100).fold(String::new(), |lines, number| lines + &format!("X-{number}: y\r\n"));
    for (head, expected) in [
        (CHUNKED.to_owned(), false),
        (TWICE.to_owned(), true),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n".into(), true),
        ("POST / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length: 5\n\n".into(), true),
        ("\r\n\nPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\n\r\nContent-Length: 5\r\n\r\n".into(), false),
        (format!("POST / HTTP/1.1\r\nContent-Length: 5\r\n{many}Transfer-Encoding: chunked\r\n\r\n"), true),
        (format!("POST / HTTP/1.1\r\n{many}Transfer-Encoding: chunked\r\n\r\n"), false),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n".into(), false),
    ] {
        for pieces in [1, 2, 3, 7, head.len()] {
            assert_eq!(ambiguous(&head, pieces), expected, "{head} in pieces of {pieces}");
        }
    }
}

#[test]
fn what_cannot_be_followed_counts_as_ambiguous() {
    for bytes in
        ["POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n", "POST / HTTP/1.1\r\nContent Length: 5\r\n\r\n", "?\r\n\r\n"]
    {
        assert!(ambiguous(&(bytes.to_owned() + CHUNKED), 9), "{bytes}");
    }
    let endless = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(Reader::MOST));
    assert!(ambiguous(&endless, 64 * 1024));
}

#[test]
fn after_an_upgrade_nothing_is_read() {
    let lengths = Lengths::default();
    let mut reader = lengths.reader(None);
    reader.on_read(b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    lengths.enough();
    reader.on_read(&[0; 100]);
    assert!(matches!(reader.section, Section::Over) && !lengths.are_ambiguous());
}

#[test]
fn empty_lines_are_no_request() {
    for piece in [1, 7, 4096] {
        let mut reader = Lengths::default().reader(None);
        let blank = b"\r\n".repeat(100);
        let end = blank.chunks(piece).position(|piece| {
            reader.on_read(piece);
            reader.check().is_err()
        });
        assert_eq!(end, Some(Reader::MOST_BLANK / piece), "in pieces of {piece}");
    }
    let mut reader = Lengths::default().reader(None);
    for piece in [&b"\r\n\r\n"[..], b"GET / HTTP/1.1\r\n", &b"x".repeat(100), b": y\r\n"] {
        reader.on_read(piece);
        assert!(reader.check().is_ok());
    }
}

/// An upgrade has its own account, for as long as it lasts.
#[test]
fn what_has_left_http_keeps_no_account_of_the_connection() {
    let budget = holding::Budget::new(1 << 30);
    let account = holding::open(&budget, 0, [10, 0, 0, 1].into());
    let lengths = Lengths::default();
    let mut reader = lengths.reader(Some(&account));
    drop(account);
    reader.on_read(b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert!(budget.held() > 0);
    lengths.enough();
    reader.on_read(&[0; 100]);
    assert_eq!(budget.held(), 0);
}

proptest! {
    #[test]
    fn a_head_ends_at_an_empty_line_and_nowhere_else(line in 0..100_usize, rest in "[a\r\n]{0,12}") {
        let piece = "y".repeat(line) + &rest;
        prop_assert_eq!(may_end(piece.as_bytes()), piece.contains("\n\n") || piece.contains("\n\r\n"));
    }

    /// Bodies may look like heads, and pieces may end anywhere.
    #[test]
    fn bodies_say_nothing_of_what_follows(
        bodies in prop::collection::vec(prop_oneof![
            Just(String::new()), Just(CHUNKED.to_owned()), Just(TWICE.to_owned()), "[a-z\r\n: ]{0,40}",
        ], 0..6),
        pieces in 1..200_usize,
        twice in any::<bool>(),
    ) {
        let mut bytes = String::new();
        for body in bodies {
            // A request without a body may omit the length.
            let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
            bytes.extend(["POST / HTTP/1.1\r\nHost: a\r\n", &length, "\r\n", &body]);
        }
        bytes += if twice { TWICE } else { CHUNKED };
        prop_assert_eq!(ambiguous(&bytes, pieces), twice);
    }
}
