//! Tests of heads that clients send, and of hostile ones.

use proptest::prelude::*;

use super::*;

fn parsed(head: &str) -> Result<(String, Option<String>), HeadError> {
    let (request, length) = parse(head.as_bytes())?.expect("a whole head");
    assert_eq!(length, head.len());
    Ok((request.destination.to_string(), request.cluster.map(|cluster| cluster.to_string())))
}

fn connect(target: &str) -> Result<(String, Option<String>), HeadError> {
    parsed(&format!("CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
}

#[test]
fn the_target_counts_and_host_does_not() {
    let of = |target| connect(target).map(|(destination, _)| destination);
    assert_eq!(of("kubernetes.default.svc:443"), Ok("kubernetes.default.svc:443".to_owned()));
    assert_eq!(of("10.0.0.1:10250"), Ok("10.0.0.1:10250".to_owned()));
    assert_eq!(of("[fd00::1]:443"), Ok("[fd00::1]:443".to_owned()));
    assert_eq!(parsed("CONNECT a:1 HTTP/1.0\r\n\r\n"), Ok(("a:1".to_owned(), None)), "older proxies' clients");
    let long = format!("{}.{}.example:443", "a".repeat(63), "b".repeat(63));
    assert_eq!(of(&long), Ok(long.clone()));
}

#[test]
fn a_target_that_is_no_destination_is_refused() {
    use DestinationError::{Host, NoPort, Port};
    for (target, error) in [
        ("host", NoPort),
        ("host:", NoPort),
        (":443", Host),
        ("host:0", Port),
        ("host:65536", Port),
        ("host:+1", Port),
        ("host:4 43", Port),
        ("user@host:443", Host),
        ("fd00::1:443", Host),
        ("[fd00::1]", NoPort),
        ("[host]:443", Host),
        ("http://host:443/", Host),
        ("/", NoPort),
    ] {
        let refused = connect(target).expect_err(target);
        // A blank ends the target, and what follows is no HTTP version.
        assert!(refused == HeadError::Target(error) || target.contains(' '), "{target}: {refused}");
    }
    assert!(connect(&format!("{}:443", "a".repeat(300))).is_err());
    assert!(matches!(connect(""), Err(HeadError::Malformed(_))), "an empty authority");
}

#[test]
fn the_cluster_is_named_once_and_well() {
    let with = |lines: &str| parsed(&format!("CONNECT a:1 HTTP/1.1\r\n{lines}\r\n")).map(|(_, cluster)| cluster);
    assert_eq!(with("Tunnel-Cluster: east\r\n"), Ok(Some("east".to_owned())));
    assert_eq!(with("tunnel-cluster:east \r\n"), Ok(Some("east".to_owned())));
    assert_eq!(with("X: y\r\n"), Ok(None));
    assert_eq!(with("Tunnel-Cluster: east\r\nTunnel-Cluster: east\r\n"), Err(HeadError::ClusterTwice));
    assert_eq!(with("Tunnel-Cluster: East\r\n"), Err(HeadError::Cluster(ClusterNameError::Characters)));
    assert_eq!(with("Tunnel-Cluster:\r\n"), Err(HeadError::Cluster(ClusterNameError::Empty)));
    assert_eq!(with("Transfer-Encoding: chunked\r\n"), Err(HeadError::Body));
    assert_eq!(with("Content-Length: 5\r\n"), Err(HeadError::Body));
    assert_eq!(with("Content-Length: 0\r\n"), Ok(None));
}

#[test]
fn what_is_no_connect_is_told_from_what_is_no_http() {
    assert_eq!(parsed("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Err(HeadError::Method));
    assert_eq!(parsed("PRI * HTTP/1.1\r\n\r\n"), Err(HeadError::Method));
    assert!(matches!(parse(b"\x16\x03\x01\x02\x00\x01"), Err(HeadError::Malformed(_))));
    assert!(matches!(parse(b"CONNECT a:1 HTTP/1.1\r\nX: y\r\n folded\r\n\r\n"), Err(HeadError::Malformed(_))));
    let many = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_HEADERS + 1));
    assert_eq!(parsed(&many), Err(HeadError::TooMany));
}

proptest! {
    #[test]
    fn no_input_is_too_much(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse(&bytes);
        let _ = parse(&[b"CONNECT ", &bytes[..]].concat());
    }

    #[test]
    fn however_it_is_cut_a_head_is_read_once_and_what_follows_is_left(cut in 0_usize..60, behind in "[ -~]{0,20}") {
        let head = "CONNECT east:443 HTTP/1.1\r\nTunnel-Cluster: east\r\n\r\n";
        let all = format!("{head}{behind}");
        let part = &all.as_bytes()[..cut.min(all.len())];
        let read = parse(part).expect("a good start");
        prop_assert_eq!(read.map(|(_, length)| length), (part.len() >= head.len()).then_some(head.len()));
    }
}
