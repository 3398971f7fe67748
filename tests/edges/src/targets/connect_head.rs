//! Any head of a CONNECT: the reader stops where the head ends, the destination is that of its
//! first line, and there is no body.
//!
//! Input: the bytes of a frontend.

use tunnel::Destination;

pub const WORDS: &[&str] = &[
    "CONNECT ",
    "GET ",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    "\r\n",
    "\n",
    "\r\n\r\n",
    "Tunnel-Cluster: east\r\n",
    "tunnel-cluster:\t",
    "Content-Length: 0\r\n",
    "content-length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "TRANSFER-ENCODING:",
    "Host: a\r\n",
    "a:1",
    "[fd00::1]:443",
    "@",
    " ",
    "\t",
    ":",
    "0",
];

pub fn check(input: &[u8]) {
    let Ok(Some((destination, cluster, length))) = tunnel_server::edges::connect(input) else { return };
    let head = &input[..length];
    assert!(head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n"), "more than the head was taken");
    let lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let mut lines = lines.into_iter().skip_while(|line| line.is_empty());
    let first = lines.next().expect("a request line");
    let words: Vec<_> = first.split(|byte| *byte == b' ').collect();
    assert_eq!(words[0], b"CONNECT");
    let target = std::str::from_utf8(words[1]).expect("a target");
    assert_eq!(Destination::parse(target), Ok(destination));
    let named = |name: &str| {
        let name = name.as_bytes().to_vec();
        move |line: &&[u8]| {
            line.to_ascii_lowercase().strip_prefix(&*name).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
        }
    };
    let fields: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!fields.iter().any(named("transfer-encoding")), "a body is taken for the tunnel's bytes");
    for line in fields.iter().filter(|line| named("content-length")(line)) {
        assert!(line.ends_with(b"0") && !line.iter().any(|byte| matches!(byte, b'1'..=b'9')), "so is this");
    }
    let clusters: Vec<_> = fields.iter().filter(|line| named("tunnel-cluster")(line)).collect();
    assert_eq!(clusters.len(), usize::from(cluster.is_some()));
    if let (Some(cluster), [line]) = (cluster, &*clusters) {
        assert!(line.ends_with(cluster.as_str().as_bytes()));
    }
    for end in 0..length {
        assert!(
            matches!(tunnel_server::edges::connect(&input[..end]), Ok(None)),
            "read differently in pieces, at {end}"
        );
    }
}
