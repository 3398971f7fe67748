//! Anything a forward proxy answers: a stream begins with the first byte of the destination, and
//! no refusal holds a credential.
//!
//! Input: one byte (bit 0: SOCKS5, bit 1: with a user and password), then all that the proxy says.

use net::prefixed::Prefixed;
use net::proxy::{Credentials, Protocol, Proxy};
use tokio::io::AsyncReadExt as _;

pub const WORDS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 403 s3cret\r\n",
    "HTTP/1.1 407 x\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n\n",
    "Content-Length: 5\r\n",
    "Basic amFuZTpzM2NyZXQ=",
    "s3cret",
    "s3c\tret",
    "\u{5}\0",
    "\u{5}\u{2}",
    "\u{1}\0",
    "\u{5}\0\0\u{1}",
    "\u{5}\0\0\u{3}\u{4}",
    "\u{5}\0\0\u{4}",
    "first bytes",
    "\u{5}\u{5}\0\u{1}",
    "HTTP/1.1 101 S\r\n",
];

pub fn check(input: &[u8]) {
    let Some((first, said)) = input.split_first() else { return };
    let socks = first & 1 != 0;
    let credentials = (first & 2 != 0).then(|| Credentials { user: "jane".into(), password: "s3cret".into() });
    let protocol = if socks { Protocol::Socks5 } else { Protocol::Http };
    let proxy = Proxy { protocol, host: "proxy".into(), port: 1, credentials };
    let mut stream = Prefixed::new(tokio::io::empty(), said.to_vec().into());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let opened = runtime.block_on(async {
        let mut bytes = proxy.ask_on(&mut stream, "member", 6443).await?.to_vec();
        stream.read_to_end(&mut bytes).await?;
        Ok::<_, net::proxy::Refusal>(bytes)
    });
    match opened {
        Ok(bytes) => {
            let expected = if socks { beyond_reply(said) } else { beyond_head(said) };
            assert_eq!(Some(&*bytes), expected, "not the destination's bytes");
        }
        Err(refusal) => {
            let told = refusal.to_string();
            assert!(!told.contains(char::is_control), "{told:?}");
            if proxy.credentials.is_some() {
                assert!(!told.contains("s3cret") && !told.contains("amFuZTpzM2NyZXQ="), "{told}");
            }
            assert!(socks || !said.starts_with(b"HTTP/1.1 200 OK\r\n\r\n"), "{told}");
        }
    }
}

/// RFC 9112 §2.1 and RFC 9110 §15.2: the bytes after the first head that is not interim, if that
/// grants the stream.
fn beyond_head(mut said: &[u8]) -> Option<&[u8]> {
    loop {
        let ends = |at: &usize| said[*at..].starts_with(b"\n\n") || said[*at..].starts_with(b"\n\r\n");
        let end = (0..said.len()).find(ends)?;
        let (head, rest) = said.split_at(end + if said[end + 1] == b'\n' { 2 } else { 3 });
        let line = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
        let status = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
        match status {
            [b'2', ..] => return Some(rest),
            [b'1', b'0', b'1', ..] => return None,
            [b'1', ..] => said = rest,
            _ => return None,
        }
    }
}

/// RFC 1928 §3 and §6, RFC 1929 §2.
fn beyond_reply(said: &[u8]) -> Option<&[u8]> {
    let ([5, 0, rest @ ..] | [5, 2, _, 0, rest @ ..]) = said else { return None };
    let (length, address) = match rest {
        [5, 0, _, 1, address @ ..] => (4, address),
        [5, 0, _, 4, address @ ..] => (16, address),
        [5, 0, _, 3, length, address @ ..] => (usize::from(*length), address),
        _ => return None,
    };
    address.get(length + 2..)
}
