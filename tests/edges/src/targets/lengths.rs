//! Any bytes of an HTTP/1.1 client: a chunked request counts as one of two lengths exactly if its
//! head has a `Content-Length` too.
//!
//! Which requests there are says hyper; where their heads are, counting along by lengths.
//!
//! Input: one byte for the pieces in which the rest is received.

use std::time::Duration;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

pub const WORDS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\n",
    "Host: a\r\n",
    "Content-Length: 5\r\n",
    "content-length:0\r\n",
    "Content-Length: +5\r\n",
    "Content-Length : 5\r\n",
    "Content-Length: 5, 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding: gzip, chunked\r\n",
    "TRANSFER-ENCODING:\tchunked\r\n",
    "\r\n",
    "\n",
    "\r\n\r\n",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "hello",
    " ",
    "\t",
    "Connection: close\r\n",
    "HTTP/1.0",
    "Expect: 100-continue\r\n",
    "\r",
];

pub fn check(input: &[u8]) {
    let Some((pieces, bytes)) = input.split_first() else { return };
    let piece = usize::from(*pieces % 64) + 1;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let requests = runtime.expect("a runtime").block_on(received(bytes.to_vec(), piece));
    let mut rest = bytes;
    for (parts, ambiguous) in requests {
        let Some((head, behind)) = head(rest) else { panic!("a request without a head: {parts:?}") };
        let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
        let named = head.split(|byte| *byte == b'\n').any(|line| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            name.eq_ignore_ascii_case(b"content-length")
        });
        assert_eq!(ambiguous, chunked && named, "{parts:?}");
        let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let length: usize = length.unwrap_or_default();
        rest = behind.get(length..).unwrap_or_default();
        if chunked {
            return;
        }
    }
}

async fn received(bytes: Vec<u8>, piece: usize) -> Vec<gateway::edges::Read> {
    let (client, server) = duplex(piece);
    let serving = tokio::spawn(gateway::edges::http1(server));
    let (mut answers, mut requests) = tokio::io::split(client);
    let sending = async {
        let _ = requests.write_all(&bytes).await;
        // All that can be read of it was, since nothing moves any more; then the client leaves.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let _ = requests.shutdown().await;
    };
    let mut sink = Vec::new();
    let _ = tokio::join!(sending, answers.read_to_end(&mut sink));
    serving.await.expect("no panic")
}

/// The first head, without empty lines before it, and the bytes after it.
fn head(mut bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    while let Some(rest) = bytes.strip_prefix(b"\r\n").or_else(|| bytes.strip_prefix(b"\n")) {
        bytes = rest;
    }
    let ends = |at: &usize| bytes[*at..].starts_with(b"\n\n") || bytes[*at..].starts_with(b"\n\r\n");
    let end = (0..bytes.len()).find(ends)?;
    let blank = if bytes[end + 1] == b'\n' { 2 } else { 3 };
    Some(bytes.split_at(end + blank))
}
